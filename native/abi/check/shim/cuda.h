#pragma once
// Opaque stand-ins so that CUPTI's headers parse without a CUDA toolkit. Our own text: names only.
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUfunc_st *CUfunction;
typedef struct CUmod_st *CUmodule;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent;
typedef struct CUaccessPolicyWindow_st CUaccessPolicyWindow;
typedef int CUdevice;
typedef int CUresult;
typedef int CUstreamAttrID;
typedef int CUlaunchAttributeID;
typedef int CUdevice_attribute;
typedef unsigned long long CUdeviceptr;
typedef enum CUgraphNodeType_enum { CU_GRAPH_NODE_TYPE_KERNEL = 0 } CUgraphNodeType;
typedef struct {
  char bytes[16];
} CUuuid;
typedef struct {
  char bytes[64];
} CUstreamAttrValue;
#define CUDA_VERSION 13000
