"""What a convolution's recorded inputs leave open: the size of its output, and the gradients it computed.

Counts nothing itself (`flops.py`, `bytes_moved.py`). A size that is not seen anywhere is not guessed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from deepcontext.profiler.model.operator_inputs import Shape
    from deepcontext.profiler.model.recorded_operators import RecordedOperators

CONVOLUTIONS: Final = frozenset({
    "aten::convolution",
    "aten::convolution_overrideable",
    "mkldnn::_convolution_pointwise",
})
CONVOLUTION_BACKWARD: Final = "aten::convolution_backward"
_TRANSPOSED: Final = "aten::conv_transpose"


class Convolutions:
    """The convolutions among the operators of a tree."""

    def __init__(self, operators: RecordedOperators) -> None:
        self._operators = operators
        # The output of a convolution has the shape of its gradient: by the shapes of the inputs.
        self._outputs: dict[tuple[Shape | None, ...], set[Shape | None]] = {}
        for name, inputs in operators.all():
            if name == CONVOLUTION_BACKWARD and len(inputs.shapes) > 2:  # noqa: PLR2004  three inputs
                gradient, image, weight = inputs.shapes[:3]
                self._outputs.setdefault((image, weight), set()).add(gradient)

    def operands(self, node: int) -> tuple[Shape, Shape] | None:
        """Return the shapes of image and weight of a convolution or its backward, None if unknown."""
        shapes = self._operators.inputs(node).shapes
        first = int(self._operators.name(node) == CONVOLUTION_BACKWARD)
        image, weight = (*shapes, None, None, None)[first : first + 2]
        if image is None or weight is None or len(image) != len(weight):
            return None
        return image, weight

    def output(self, node: int) -> Shape | None:
        """Return the shape of a convolution's output, None if it is not seen.

        It is that of the output's gradient, or is among the inputs of operators inside (on a CPU).
        """
        operands = self.operands(node)
        if operands is None:
            return None
        image, weight = operands
        seen = self._outputs.get((image, weight), set()) - {None}
        if not seen:
            inside = self._operators.shapes_inside(node)
            seen = {each for each in inside if self._can_be_output(node, each) and each != image}
            if not seen and image in inside and self._can_be_output(node, image):
                # The operators inside show one shape where input and output have the same.
                seen = {image}
        return seen.pop() if len(seen) == 1 else None

    def _can_be_output(self, node: int, shape: Shape) -> bool:
        operands = self.operands(node)
        if operands is None or len(shape) != len(operands[0]):
            return False
        image, weight = operands
        # The channels of a transposed convolution's output depend on the number of its groups.
        is_any = self.is_transposed(node)
        return shape[0] == image[0] and (shape[1] == weight[0] or is_any) and shape != weight

    def gradients(self, node: int) -> tuple[Shape, ...]:
        """Return the shapes of the gradients that a convolution's backward computed.

        A gradient is not computed if no earlier operator needs it, or the weight is frozen. On a CPU
        the operators inside show this; elsewhere both gradients are assumed to be computed.
        """
        operands = self.operands(node)
        if operands is None:
            return ()
        inside = self._operators.shapes_inside(node)
        return tuple(each for each in operands if each in inside) or operands

    def is_transposed(self, node: int) -> bool:
        """Return whether a transposed convolution called this operator, or this is its backward."""
        return self._operators.is_called_by(node, _TRANSPOSED)
