"""Sets of graphs: packed, exact labels, own files, downloads' layouts, and how they are missed."""

import pickle
import shutil
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

from clutils import data, training
from clutils.data.graphs import MOTIF_EDGES, PLANETOID_PARTS, TU, packed, unpacked
from tests.data.test_vectors import Trap

PATH = [(0, 1), (1, 2)]


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("CLUTILS_DATA", str(tmp_path))
    return tmp_path


def as_networkx(graph):
    nodes, _, adjacency = unpacked(graph)
    return nx.from_numpy_array(adjacency[nodes][:, nodes].numpy())


def test_packing_pads_and_unpacking_gives_back():
    pair = [
        (torch.tensor([[1.0, 2.0]]), torch.zeros(1, 1)),
        (torch.rand(3, 2), torch.ones(3, 3).fill_diagonal_(0)),
    ]
    nodes, attributes, adjacency = unpacked(packed(pair))
    assert nodes.tolist() == [[True, False, False], [True, True, True]]
    assert torch.equal(attributes[1], pair[1][0]) and torch.equal(adjacency[1], pair[1][1])
    assert attributes[0].tolist() == [[1, 2], [0, 0], [0, 0]] and not adjacency[0].any()
    assert data.width(packed(pair)) == 2


def test_the_atlas_has_every_graph_of_up_to_seven_nodes_once_and_its_labels_are_computed_anew():
    whole = data.load("graphs:atlas-triangles", "all")
    sizes = unpacked(whole.graphs)[0].sum(dim=1).bincount().tolist()
    assert sizes == [0, 1, 2, 4, 11, 34, 156, 1044]  # OEIS A000088
    adjacency = unpacked(whole.graphs)[2]
    triangles = torch.linalg.matrix_power(adjacency, 3).diagonal(dim1=1, dim2=2).sum(dim=1) > 0
    assert torch.equal(whole.labels, triangles.long())
    connected = data.load("graphs:atlas-connected", "all")
    reached = torch.linalg.matrix_power(adjacency + torch.eye(7), 7) > 0
    nodes = unpacked(whole.graphs)[0]
    joined = (reached | ~(nodes[:, :, None] & nodes[:, None, :])).all(dim=2).all(dim=1)
    assert torch.equal(connected.labels, joined.long()) and int(joined.sum()) == 996  # A001349, 1 to 7
    planar, two = data.load("graphs:atlas-planar", "all"), data.load("graphs:atlas-bipartite", "all")
    assert torch.equal(connected.graphs, planar.graphs)
    odd = torch.stack(
        [torch.linalg.matrix_power(adjacency, k).diagonal(dim1=1, dim2=2).sum(1) for k in (3, 5, 7)]
    )
    assert torch.equal(two.labels, (odd.sum(dim=0) == 0).long())
    assert all(planar.labels[adjacency.sum(dim=(1, 2)) / 2 < 9])  # K5 has 10 edges, K3,3 has 9
    assert not any(planar.labels[adjacency.sum(dim=(1, 2)) / 2 > 15])  # 3V - 6


def test_parts_are_fixed_and_together_all():
    train, test, whole = (data.load("graphs:atlas-connected", part) for part in ("train", "test", "all"))
    assert len(train) + len(test) == len(whole) == 1252
    assert torch.equal(data.load("graphs:atlas-connected", "test").graphs, test.graphs)
    assert len(data.load("graphs:atlas-connected", limit=10)) == 10


def test_a_motif_graph_has_its_motif_and_no_other_cycle():
    found = data.load("graphs:motifs", limit=40)
    assert found.class_names == tuple(MOTIF_EDGES)
    for graph, label in zip(found.graphs, found.labels, strict=True):
        own = as_networkx(graph)
        assert nx.is_connected(own)
        core = nx.k_core(own, 2)
        assert nx.is_isomorphic(core, nx.Graph(list(MOTIF_EDGES.values())[label]))
    assert not torch.equal(found.graphs, data.load("graphs:motifs", limit=40, seed=1).graphs)
    assert torch.equal(found.graphs, data.load("graphs:motifs", limit=40).graphs)


def test_networks_have_their_nodes_as_samples_and_exact_labels():
    for name, nodes, edges in (("karate", 34, 78), ("miserables", 77, 254), ("florentine", 15, 20)):
        found = data.load(f"nodes:{name}")
        own = as_networkx(found.graphs[0])
        assert (len(found), own.number_of_edges()) == (nodes, edges) and found.of_nodes
        assert data.kind_of(found.inputs).name == "nodes"
        if name != "karate":
            assert set(nx.articulation_points(own)) == set(found.labels.nonzero()[:, 0].tolist())
    assert data.load("nodes:karate").labels.bincount().tolist() == [17, 17]


def test_blocks_are_tied_within_more_than_between_as_asked():
    found = data.graphs.blocks((100, 100), within=0.3, between=0.05)
    adjacency, own = unpacked(found.graphs)[2][0], found.labels[:, None] == found.labels
    off = ~torch.eye(200, dtype=torch.bool)
    assert float(adjacency[own & off].mean()) == pytest.approx(0.3, abs=0.02)
    assert float(adjacency[~own].mean()) == pytest.approx(0.05, abs=0.02)


def test_a_part_of_a_network_keeps_the_others_as_neighbours():
    whole = data.load("nodes:karate")
    some = whole.subset([3, 1, 8])
    assert len(some) == 3 and torch.equal(some.labels, whole.labels[[1, 3, 8]])
    assert some.graphs[0, :, 0].tolist().count(-1) == 31
    assert torch.equal(some.graphs[..., 1:], whole.graphs[..., 1:])
    again = some.subset(slice(0, 2))
    assert torch.equal(again.labels, whole.labels[[1, 3]])


# ---- files -------------------------------------------------------------------------------------------------


def test_the_collections_own_layout_gives_the_same_graphs(own_folder):
    pytest.importorskip("torch_geometric")
    folder = own_folder / "graphs" / "MUTAG" / "raw"
    folder.mkdir(parents=True)
    (folder / "MUTAG_A.txt").write_text("1, 2\n2, 1\n2, 3\n3, 2\n4, 5\n5, 4\n")
    (folder / "MUTAG_graph_indicator.txt").write_text("1\n1\n1\n2\n2\n")
    (folder / "MUTAG_graph_labels.txt").write_text("1\n-1\n")
    (folder / "MUTAG_node_labels.txt").write_text("0\n3\n0\n3\n3\n")
    found = data.load("graphs:mutag", "all", download=False)
    assert found.labels.tolist() == [1, 0] and found.class_names == TU["mutag"]
    assert [as_networkx(graph).number_of_edges() for graph in found.graphs] == [2, 1]
    assert unpacked(found.graphs)[1][1, :2].tolist() == [[0, 0, 0, 1], [0, 0, 0, 1]]


@pytest.mark.parametrize("name", ["graphs:mutag", "graphs:proteins", "nodes:cora", "nodes:citeseer"])
def test_without_files_and_network_one_line_says_what_to_do(name):
    with pytest.raises(
        data.Unavailable, match=r"is not, or not whole.*To do: call again online; or copy"
    ) as error:
        data.load(name, download=False)
    assert "\n" not in str(error.value)


def test_a_citation_network_has_its_public_parts(own_folder):
    """560 papers in Planetoid's layout: 7 labelled, 540 known, the last 20 to test, in another order."""
    pytest.importorskip("torch_geometric")
    folder = own_folder / "graphs" / "Cora" / "raw"
    folder.mkdir(parents=True)
    dice = np.random.default_rng(0)
    x, y, edges = np.eye(560, 8)[dice.permutation(560)], np.arange(560) % 7, {(0, 1), (2, 559), (3, 540)}
    cited = defaultdict(list, {a: [b, a] for a, b in edges})
    tested = 540 + dice.permutation(20)
    parts = {"x": slice(0, 7), "allx": slice(0, 540), "tx": tested}
    names = {part: scipy.sparse.csr_matrix(x[rows]) for part, rows in parts.items()}
    names |= {part.replace("x", "y"): np.eye(7)[y[rows]] for part, rows in parts.items()} | {"graph": cited}
    for part, value in names.items():
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(value, protocol=2))
    (folder / "ind.cora.test.index").write_text("".join(f"{one}\n" for one in tested))
    whole = data.load("nodes:cora", download=False)
    assert whole.labels.tolist() == y.tolist() and len(whole.class_names) == 7
    _, attributes, adjacency = unpacked(whole.graphs)
    assert np.array_equal(attributes[0], x)
    assert {(a, b) for a, b in adjacency[0].nonzero().tolist() if a < b} == edges
    assert data.load("nodes:cora", "public-train", download=False).labels.tolist() == list(range(7))
    test = data.load("nodes:cora", "public-test", download=False)
    assert test.labels.tolist() == y[540:].tolist() and len(test) == 20


def test_a_pickle_with_anything_but_arrays_is_refused_and_not_run(own_folder):
    pytest.importorskip("torch_geometric")
    sprung, folder = own_folder / "sprung", own_folder / "graphs" / "Cora" / "raw"
    folder.mkdir(parents=True)
    for part in PLANETOID_PARTS:
        (folder / f"ind.cora.{part}").write_bytes(pickle.dumps(Trap(sprung), protocol=2))
    with pytest.raises(data.Unavailable, match=r"ind\.cora\.allx is not an array: it asks for ") as error:
        data.load("nodes:cora", download=False)
    assert "\n" not in str(error.value) and not sprung.exists()
    for name in ("builtins eval", "numpy load", "numpy.f2py.capi_maps getattr", "os system", "codecs open"):
        (folder / "ind.cora.allx").write_bytes(b"c" + name.replace(" ", "\n").encode() + b"\n.")
        with pytest.raises(data.Unavailable, match="which is no part of an array"):
            data.load("nodes:cora", download=False)
    (folder / "ind.cora.allx").write_bytes(b"\x80\x02]")
    with pytest.raises(data.Unavailable, match=r"ind\.cora\.allx is not an array"):
        data.load("nodes:cora", download=False)


@pytest.mark.parametrize(("name", "shape"), [("graphs:mutag", (188, 28, 1 + 7 + 28)), ("nodes:cora", None)])
def test_real_files_of_the_collections_are_read(own_folder, shared, name, shape):
    pytest.importorskip("torch_geometric")
    called = {"graphs:mutag": "MUTAG", "nodes:cora": "Cora"}[name]
    if not (shared / "graphs" / called).is_dir():
        pytest.skip(f"no {called} at {shared}")
    shutil.copytree(shared / "graphs" / called, own_folder / "graphs" / called / "raw")
    if shape:
        found = data.load(name, "all", download=False)
        nodes, _, adjacency = unpacked(found.graphs)
        assert found.graphs.shape == shape and found.labels.bincount().tolist() == [63, 125]
        assert nodes.sum() == 3371 and adjacency.sum() / 2 == 3721
    else:
        found = data.load(name, download=False)
        assert found.labels.bincount().tolist() == [351, 217, 418, 818, 426, 298, 180]
        assert unpacked(found.graphs)[2].sum() / 2 == 5278
        names = ("public-train", "public-val", "public-test")
        asked = [data.load(name, part, download=False).graphs[0, :, 0].gt(0) for part in names]
        at = [part.nonzero()[:, 0].tolist() for part in asked]
        assert at == [[*range(140)], [*range(140, 640)], [*range(1708, 2708)]]


# ---- edges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda A: A.tril(), r"is directed: 156 entries .*; torch\.maximum\(A, A\.T\)"),
        (lambda A: A + torch.eye(34), r"has loops at 34 nodes; A\.fill_diagonal_\(0\)"),
        (lambda A: A + torch.diag(torch.arange(34) == 0), "has loops at 1 nodes"),
    ],
)
def test_a_directed_graph_or_a_loop_is_refused_with_what_mends_it(change, said):
    _, attributes, adjacency = (part[0] for part in unpacked(data.load("nodes:karate").graphs))
    graphs = packed([(attributes, change(adjacency))])
    with pytest.raises(ValueError, match=rf"GraphSet: the graph {said}"):
        data.GraphSet(graphs, torch.zeros(34, dtype=torch.int64), ("one",), "mine")
    with pytest.raises(ValueError, match=rf"training: data: the graph {said}"):
        training.Run(method="grace", data=graphs, steps=1)
    both = torch.cat([packed([(attributes, adjacency)]), graphs])
    with pytest.raises(ValueError, match=rf"GraphSet: graph 1 of 2 {said}"):
        data.GraphSet(both, torch.zeros(2, dtype=torch.int64), ("one",), "mine")
    mended = torch.maximum(change(adjacency), change(adjacency).T).fill_diagonal_(0)
    assert torch.equal(mended, adjacency)


def test_an_edge_that_a_graph_has_twice_counts_once():
    twice = data.graphs.adjacency_of(nx.MultiGraph([*PATH, *PATH]))
    assert torch.equal(twice, data.graphs.adjacency_of(nx.Graph(PATH)))


# ---- one's own ---------------------------------------------------------------------------------------------


class Data:
    """What is read of PyTorch Geometric's `Data`: its attributes."""

    def __init__(self, edge_index, x=None, y=None):
        self.edge_index, self.x, self.y = torch.tensor(edge_index), x, y
        self.num_nodes = len(x) if x is not None else int(self.edge_index.max()) + 1


BOTH = [[0, 1, 1, 2], [1, 0, 2, 1]]  # a path of three nodes


def test_graphs_of_networkx_and_of_geometric_are_the_same_set():
    x = torch.tensor([[1.0, 0], [0, 1], [0.5, 2]])
    path, ring = nx.path_graph(3), nx.cycle_graph(3)
    for graph, label in ((path, "path"), (ring, "ring")):
        nx.set_node_attributes(graph, {node: x[node].tolist() for node in graph}, "x")
        graph.graph["y"] = label
    around = [*BOTH[0], 0, 2], [*BOTH[1], 2, 0]
    made = [
        data.graph_set([path, ring]),
        data.graph_set([Data(BOTH, x, torch.tensor([0])), Data(around, x, torch.tensor([1]))]),
    ]
    for found in made:
        assert torch.equal(found.graphs, made[0].graphs) and found.labels.tolist() == [0, 1]
    assert made[0].class_names == ("path", "ring") and made[1].class_names == ("0", "1")
    plain = data.graph_set([nx.path_graph(4), nx.cycle_graph(3)], ["b", "a"])
    assert plain.graphs.shape == (2, 4, 1 + 1 + 4) and plain.labels.tolist() == [1, 0]
    assert data.graph_set([nx.path_graph(4), nx.cycle_graph(3)]).labels.tolist() == [-1, -1]
    run = training.Run(method="graphcl", data=data.graph_set([path, ring] * 4), batch_size=8, steps=1)
    assert run.step()["step"] == 1


def test_one_graph_has_its_nodes_as_samples():
    club = nx.karate_club_graph()
    nx.set_node_attributes(club, {node: club.nodes[node]["club"] for node in club}, "label")
    found, known = data.graph_set(club), data.load("nodes:karate")
    assert found.of_nodes and torch.equal(found.graphs, known.graphs)
    assert found.class_names == known.class_names and torch.equal(found.labels, known.labels)
    other = data.graph_set(Data(BOTH, torch.eye(3), torch.tensor([1, 0, 1])))
    assert len(other) == 3 and other.labels.tolist() == [1, 0, 1]
    path = nx.path_graph(3)
    path.add_nodes_from((3, 4))
    assert len(data.graph_set(path)) == 5  # two nodes without an edge
    assert training.Run(method="dgi", data=found, steps=1).step()["step"] == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([nx.path_graph(3), nx.DiGraph(PATH)], r"graph 1 of 2 is directed: .*graph\.to_undirected\(\)"),
        ([nx.path_graph(3), nx.Graph([(0, 0)])], "graph 1 of 2 has loops at 1 nodes; .*selfloop_edges"),
        (Data([[0, 1], [1, 2]]), r"the graph is directed: .*torch\.maximum"),
        (Data([[0, 1, 1], [1, 0, 1]]), "the graph has loops at 1 nodes"),
        (Data([[0, 7], [7, 0]], torch.ones(3, 1)), "has an edge of node 7, but nodes are 0 to 2"),
        ([nx.path_graph(3), nx.path_graph(200)], "graph 1 of 2 has 200 nodes, .* 1 to 128: most_nodes=200"),
        (nx.empty_graph(100_000), "the graph has 100,000 nodes, .*most_nodes=100000 takes it, and 40 GB of"),
        ([Data(BOTH, torch.ones(3, 3)), Data(BOTH, torch.ones(3, 1))], "graph 1 has 1 attributes a node"),
        ([Data(BOTH, torch.ones(3, 3)), Data(BOTH)], "graph 1 has no attributes a node, the first 3"),
        (Data([[0, 0.5], [0.5, 0]]), r"has edges \(2, 2\) torch\.float32, but must have whole numbers"),
        (Data([[0, 1], [1, 2], [2, 0]]), r"has edges \(3, 2\).*, but must have whole numbers \(2, E\)"),
        ([nx.path_graph(3), nx.Graph()], "graph 1 of 2 has 0 nodes"),
        (SimpleNamespace(edge_index=torch.zeros(2, 0), num_nodes=0), "the graph has 0 nodes"),
        ([Data(BOTH, y=torch.tensor([1])), Data(BOTH)], "graph 1 of 2 has no label, others have"),
        ([Data(BOTH, y=torch.tensor([k])) for k in (0.5, 1)], "labels hold 0.5, but must be classes"),
        (nx.to_numpy_array(nx.path_graph(3)), r"of an adjacency A networkx\.from_numpy_array\(A\)"),
        ([([(0, 1)], 2)] * 2, r"graph 0 of 2 is tuple, .*of pairs of nodes networkx\.Graph\(pairs\)"),
        ([nx.path_graph(3)], "holds 1 graphs, but must hold two or more; one is given alone"),
        ([], "holds 0 graphs"),
        ("karate", "the graph is str, but must be a networkx graph"),
    ],
)
def test_graphs_that_are_none_are_refused_with_what_mends_them(given, said):
    with pytest.raises(ValueError, match=f"(?i)graph_?set: .*{said}"):
        data.graph_set(given)


def test_larger_graphs_are_taken_where_they_are_asked_for_and_a_run_says_how_graphs_become_a_set():
    assert data.graph_set([nx.path_graph(3), nx.path_graph(200)], most_nodes=200).graphs.shape[1] == 200
    with pytest.raises(ValueError, match=r"data is .*data\.graph_set\(graphs\) makes one of graphs"):
        training.Run(method="graphcl", data=[nx.path_graph(3)] * 3)


def test_geometrics_own_data_are_read():
    geometric = pytest.importorskip(
        "torch_geometric.data", reason="PyTorch Geometric is no extra of this project"
    )
    one = geometric.Data(x=torch.eye(3), edge_index=torch.tensor(BOTH), y=torch.tensor([1]))
    found = data.graph_set([one, one])
    assert found.labels.tolist() == [1, 1] and torch.equal(found.graphs[0, :, 1:4], torch.eye(3))
    for several in (geometric.Batch.from_data_list([one, one]), iter([one, one]), (one, one)):
        assert torch.equal(data.graph_set(several).graphs, found.graphs)
    one.edge_weight = torch.rand(4)
    assert data.graph_set([one, one]).source.endswith("weights and attributes of edges are left out")


def test_what_nodes_of_networkx_have_and_nobody_reads_is_said():
    club = nx.karate_club_graph()
    found = data.graph_set(club)
    assert found.source.endswith("are left out; attributes of nodes left out: club")
    assert found.labels.max() == -1
    told = data.graph_set(club, [club.nodes[node]["club"] for node in club])
    assert told.class_names == ("Mr. Hi", "Officer")


def test_a_network_of_ones_own_is_an_edge_list_and_perhaps_a_table_of_its_nodes(tmp_path):
    edges, nodes = tmp_path / "edges.csv", tmp_path / "nodes.csv"
    edges.write_text("# mine\nsource,target,weight\nann,bob,2\nbob,cy,1\n")
    found = data.load(f"nodes:file:{edges}")
    assert len(found) == 3 and found.labels.tolist() == [-1] * 3 and "left out: weight" in found.source
    assert torch.equal(unpacked(found.graphs)[2][0], torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]]))
    nodes.write_text("who,age,town,label\nann,30,x,0\nbob,40,y,1\ndee,50,x,1\ncy,60,x,0\n")
    found = data.load(f"nodes:file:{edges}?nodes={nodes}")
    _, attributes, adjacency = unpacked(found.graphs)
    assert attributes[0].tolist() == [[30, 1, 0], [40, 0, 1], [50, 1, 0], [60, 1, 0]]
    assert found.labels.tolist() == [0, 1, 1, 0] and adjacency[0, 2].tolist() == [0, 0, 0, 0]
    nodes.write_text("who,label\nann,a\nbob,b\ncy,a\n")
    only = data.load(f"nodes:file:{edges}?nodes={nodes}")
    assert only.class_names == ("a", "b") and torch.equal(unpacked(only.graphs)[1][0], torch.eye(3))
    run = training.Run(method="grace", data=f"nodes:file:{edges}?nodes={nodes}", steps=1)
    run.step()
    run.save(tmp_path / "run.pt")
    assert training.resume(tmp_path / "run.pt").steps_done == 1
    for text, behind, said in (
        ("a,b\nb,\n", "", "line 2 is 'b,', but must name two nodes"),
        ("a b\na b c\n", "", "pandas.read_csv: .*Expected 2 fields in line 2, saw 3"),
        ("a a\n", "", "names no edge between two nodes"),
        ("", "", "names no edge"),
        ("ann eve\n", f"?nodes={nodes}", "no row for 1 nodes, eve: its first column, 'who', holds 'ann', "),
        ("ann bob\n", f"?nodes={nodes}&label=kind", "no column 'kind'"),
        ("a b\nb c\n", "?most=2", r"has 3 nodes, more than 2: .*\?most=3 takes it"),
    ):
        edges.write_text(text)
        with pytest.raises(ValueError, match=said):
            data.load(f"nodes:file:{edges}{behind}")


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ('"Person A","Person B"\n"Smith, J",b\n', "Smith, J, b; ends: 'Person A' and 'Person B'"),
        ("source_id,target_id\n1,2\n2,3\n", "1, 2, 3; ends: 'source_id' and 'target_id'"),
        ("Kunde\tProdukt\n1\t2\n", "1, 2; ends: 'Kunde' and 'Produkt'"),
        ("u v\n1 2\n", "1, 2; ends: 'u' and 'v'"),
        ("11 12\n13 14\n", "11, 12, 13, 14"),
        ("% sym unweighted\n1 2\n", "1, 2"),
        ("u v\nv w\n", "u, v, w"),
        ("node1 node2\nnode2 node3\n", "node1, node2, node3"),
        ("citing paper,cited paper\nx,y\n", "x, y; ends: 'citing paper' and 'cited paper'"),
        ("ann bob\nbob cy\n", "ann, bob, cy"),
    ],
)
def test_the_first_line_of_an_edge_list_is_a_heading_or_an_edge(tmp_path, text, nodes):
    (tmp_path / "own.txt").write_text(text)
    source = data.load(f"nodes:file:{tmp_path / 'own.txt'}").source
    assert f"; nodes: {nodes}" in source + ";" and source.endswith(nodes)


@pytest.mark.parametrize(
    ("labels", "classes", "codes"),
    [
        ("-1 1 -1", ("-1", "1"), [0, 1, 0]),
        ("0.0 1.0 NA", ("0", "1"), [0, 1, -1]),
        ("b a b", ("a", "b"), [1, 0, 1]),
        ("None b None", ("None", "b"), [0, 1, 0]),
    ],
)
def test_nodes_labels_are_read_as_a_tables_whether_or_not_there_are_attributes(
    tmp_path, labels, classes, codes
):
    (tmp_path / "edges.txt").write_text("NA None\nNone 01\n")
    names = ("NA", "None", "01")
    for attribute, titles, asked in (("", "who, label", ""), ("1,", "who, age, kind", "&label=kind")):
        rows = [f"{node},{attribute}{label}" for node, label in zip(names, labels.split(), strict=True)]
        (tmp_path / "own.csv").write_text("\n".join([titles, *rows]))
        found = data.load(f"nodes:file:{tmp_path / 'edges.txt'}?nodes={tmp_path / 'own.csv'}{asked}")
        assert "; nodes: NA, None, 01; " in found.source
        assert found.class_names == classes and found.labels.tolist() == codes
    (tmp_path / "own.csv").write_text("who,label\nNA,0.5\nNone,1\n01,1\n")
    with pytest.raises(ValueError, match=r"holds 0\.5, which is no class: .*\?nodes=.*own\.csv&label= takes"):
        data.load(f"nodes:file:{tmp_path / 'edges.txt'}?nodes={tmp_path / 'own.csv'}")


EDGES = [(0, 1), (1, 2), (2, 3), (3, 5), (0, 4)]


@pytest.mark.parametrize(
    ("heading", "first", "second"),
    [
        *((heading, 1, 2) for heading in (",source,target", "weight,source,target", "id,Source,Target,Type")),
        *((heading, 1, 2) for heading in ("Unnamed: 0,from,to", "edge_id,user_1,user_2", "index,u,v")),
        *((heading, 1, 2) for heading in ("n,protein1,protein2,combined_score", "from_time,src,dst")),
        *((heading, 0, 1) for heading in ("sourceId,targetId,w", "source,target,i")),
        ("Nr,Person A,Person B", 1, 2),
        ("target,date,source", 2, 0),
    ],
)
def test_the_two_columns_that_a_heading_calls_ends_are_the_ends_and_others_are_said(
    tmp_path, heading, first, second
):
    titles = heading.split(",")
    lines = [heading]
    for number, pair in enumerate(EDGES):
        cells = [str(90 + number)] * len(titles)
        cells[first], cells[second] = map(str, pair)
        lines.append(",".join(cells))
    (tmp_path / "e.csv").write_text("\n".join(lines))
    found = data.load(f"nodes:file:{tmp_path / 'e.csv'}")
    assert len(found) == 6 and int(unpacked(found.graphs)[2].sum()) == 10
    others = [title for at, title in enumerate(titles) if at not in (first, second)]
    left = [title or "a column without a name" for title in others]
    assert f"ends: {titles[first]!r} and {titles[second]!r}; left out: {', '.join(left)}" in found.source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Kunde,Produkt,Preis\n1,2,3\n", "'Kunde', 'Produkt', 'Preis', does not say which two"),
        ("source_id,source_name,target_id,target_name\n1,a,2,b\n", "does not say which two"),
        ("Kunde,Produkt\nann,tea\nbob,tea\n", "'Kunde', 'Produkt', does not say which two"),
        ("u v\na b\n", "'u', 'v', does not say which two"),  # names, or a heading
        ("A1 2\n3 4\n", "'A1', '2', does not say which two"),
        ("node,parent,v\na,b,1\n", "'node', 'parent', 'v', does not say which two"),
        ("0,5,7\n1,5,8\n2,7,8\n", "'0', '5', '7', does not say .*add a line source,target"),
        ("ann,bob,knows\nbob,cy,likes\n", "'knows', does not say which two"),
        ("1 2 0.5 1300\n2 3 0.5 1400\n", "'1300', does not say which two"),
        ('{"nodes": [{"id": 0}], "links": []}', "is no list of edges.*networkx.node_link_graph"),
        ("%%MatrixMarket matrix coordinate\n3 4 1\n1 2 1\n", "is no list of edges.*from_scipy"),
    ],
)
def test_columns_of_an_edge_list_that_nobody_explains_are_refused(tmp_path, text, said):
    (tmp_path / "e.csv").write_text(text)
    with pytest.raises(ValueError, match=said):
        data.load(f"nodes:file:{tmp_path / 'e.csv'}")


def test_loops_and_whole_numbers_with_a_point_are_told_in_an_edge_list(tmp_path):
    (tmp_path / "e.csv").write_text("source,target\n1,2.0\n2,3.0\n3,3.0\n")
    found = data.load(f"nodes:file:{tmp_path / 'e.csv'}")
    assert len(found) == 3 and "1 lines that tie a node to itself left out, first line 4" in found.source


def test_nothing_that_lies_in_the_folder_of_a_published_set_is_unpickled(own_folder, shared):
    if not (shared / "graphs" / "MUTAG").is_dir():
        pytest.skip(f"no MUTAG at {shared}")
    pytest.importorskip("torch_geometric")
    sprung = own_folder / "sprung"
    shutil.copytree(shared / "graphs" / "MUTAG", own_folder / "graphs" / "MUTAG" / "raw")
    for name in ("data.pt", "pre_transform.pt", "pre_filter.pt"):
        file = own_folder / "graphs" / "MUTAG" / "processed" / name
        file.parent.mkdir(exist_ok=True)
        torch.save(Trap(sprung), file)
    assert len(data.load("graphs:mutag", "all", download=False)) == 188 and not sprung.exists()


def test_without_pytorch_geometric_the_extra_is_named(own_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    for name in ("graphs:mutag", "nodes:cora"):
        with pytest.raises(
            data.Unavailable, match=r"PyTorch Geometric, .* is not here: pip install -e '\.\[graphs\]'"
        ):
            data.load(name)
