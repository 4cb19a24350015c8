"""``python -m training.export``: weights into the ONNX file that the product ships, halved to 16 bits, and its hash.

The file holds 16-bit weights behind casts; ONNX Runtime widens them once when it loads, and computes in 32 bits.
"""

import argparse
import hashlib
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from training.network import Network, Planes


def export(network: Network, path: Path, *, halve: bool = True) -> str:
    """Write the model and give its sha256."""
    network = network.cpu().eval()
    torch.onnx.export(
        Planes(network).eval(),
        (torch.zeros(1, 3, 64, 96),),
        str(path),
        input_names=["picture"],
        output_names=["planes"],
        dynamic_axes={"picture": {0: "n", 2: "h", 3: "w"}, "planes": {0: "n", 2: "h", 3: "w"}},
        opset_version=17,
        dynamo=False,
    )
    model = onnx.load(path)
    if halve:
        _halve(model)
    model.doc_string = "Headrace, the eye: finds marks in pictures. Apache-2.0."
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _halve(model: onnx.ModelProto) -> None:
    graph = model.graph
    casts = []
    for weight in list(graph.initializer):
        if weight.data_type != TensorProto.FLOAT or numpy_helper.to_array(weight).size < 64:
            continue
        small = numpy_helper.from_array(numpy_helper.to_array(weight).astype(np.float16), weight.name + "_16")
        casts.append(helper.make_node("Cast", [small.name], [weight.name], to=TensorProto.FLOAT))
        graph.initializer.remove(weight)
        graph.initializer.append(small)
    nodes = [*casts, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("model", type=Path)
    args = parser.parse_args()
    network = Network()
    network.load_state_dict(torch.load(args.weights, map_location="cpu", weights_only=True))
    print(export(network, args.model), f"{args.model.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
