"""Nodes of descriptions as skops writes them, to be made up."""

import json


def node(loader, name, number=1, **content):
    """A node as skops writes it."""
    module, _, own = name.rpartition(".")
    names = {"__loader__": loader, "__module__": module, "__class__": own}
    return {**names, "__id__": number, **content}


def json_node(text, number):
    """A number or text."""
    return node("JsonNode", "builtins.str", number, content=text)


def tuple_node(*items, number=90):
    return node("TupleNode", "builtins.tuple", number, content=list(items))


def list_node(*items, number=80):
    return node("ListNode", "builtins.list", number, content=list(items))


def dict_node(key_type, number=70, **items):
    return node("DictNode", "builtins.dict", number, key_types=key_type, content=items)


def stand_in(kind, *parts, number=1):
    """A call of a stand-in, whose own nodes have two numbers after a million."""
    own = 10**6 + 2 * number
    content = tuple_node(json_node(json.dumps(kind), own), *parts, number=own + 1)
    name = "calibration.storage.stand_ins.StandIn"
    return node("ConstructorFromReduceNode", name, number, content=content)
