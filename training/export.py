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
from training.refiner import INPUTS, Finished, Refiner
from training.reopen import load_weights


def export(network: Planes | Finished, path: Path, *, halve: bool = True) -> str:
    """Write the model and give its sha256."""
    inputs = 3 if isinstance(network, Planes) else INPUTS
    sizes = {0: "n", 2: "h", 3: "w"}
    torch.onnx.export(
        network.cpu().eval(),
        (torch.zeros(1, inputs, 64, 96),),
        str(path),
        input_names=["given"],
        output_names=["told"],
        dynamic_axes={"given": sizes, "told": sizes},
        opset_version=17,
        dynamo=False,
    )
    model = onnx.load(path)
    if halve:
        _halve(model)
    model.doc_string = f"Headrace, {type(network).__name__}: finds marks in pictures and takes them off. Apache-2.0."
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


def export_file(weights: Path, model: Path) -> str:
    """The same from a file that training wrote: a detector or a refiner."""
    taught = load_weights(weights)
    if "hand.head.0.bias" in taught:
        finished = Finished(Refiner())
        finished.load_state_dict(taught)
        return export(finished, model)
    network = Network()
    network.load_state_dict(taught)
    return export(Planes(network), model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("model", type=Path)
    args = parser.parse_args()
    print(export_file(args.weights, args.model), f"{args.model.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
