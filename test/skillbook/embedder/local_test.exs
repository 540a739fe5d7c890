defmodule Skillbook.Embedder.LocalTest do
  use ExUnit.Case, async: true

  alias Skillbook.Embedder
  alias Skillbook.Embedder.Local
  alias Skillbook.Support.JSON
  alias Skillbook.TestModel

  # Vectors of sentence-transformers, by fixtures/embeddings/minilm.py.
  @expected "test/support/fixtures/embeddings/minilm.json"

  setup_all do
    {:ok, expected} = @expected |> File.read!() |> JSON.decode()
    %{embedder: Local.new!(TestModel.folder!()), expected: expected}
  end

  defp floats(vector), do: for(<<n::float-32-little <- vector>>, do: n)

  defp difference(a, b),
    do: Enum.zip(a, b) |> Enum.map(fn {a, b} -> abs(a - b) end) |> Enum.max()

  test "vectors are those of sentence-transformers", %{embedder: embedder, expected: expected} do
    assert length(expected) >= 20
    texts = Enum.map(expected, & &1["text"])
    {:ok, together} = Embedder.embed(embedder, texts)

    for {%{"text" => text, "vector" => vector}, in_batch} <- Enum.zip(expected, together) do
      {:ok, [alone]} = Embedder.embed(embedder, [text])

      for got <- [alone, in_batch] do
        assert length(floats(got)) == length(vector)
        assert difference(floats(got), vector) < 1.0e-3, inspect(text)
      end
    end
  end

  test "the model's name has its folder and a fingerprint", %{embedder: embedder} do
    assert Embedder.info(embedder) == %{model: "all-MiniLM-L6-v2 0cf653799afcd30b", size: 384}
    assert embedder.max_tokens == 256
    refute inspect(embedder) =~ "#Reference"
  end

  test "texts of similar meaning are near", %{embedder: embedder} do
    texts = ["overdue invoices", "bills nobody has paid", "a walk in the park"]
    {:ok, [a, b, c]} = Embedder.embed(embedder, texts)

    assert similarity(a, b) > 0.4
    assert similarity(a, c) < 0.2
  end

  defp similarity(a, b),
    do: Enum.zip(floats(a), floats(b)) |> Enum.map(fn {a, b} -> a * b end) |> Enum.sum()

  test "any number of threads gives the same vectors", %{embedder: embedder} do
    texts = for n <- 1..140, do: String.duplicate("word #{n} ", rem(n * 7, 30))
    {:ok, expected} = Embedder.embed(%{embedder | threads: 1}, texts)

    for threads <- [2, 3, 1024],
        do: assert(Embedder.embed(%{embedder | threads: threads}, texts) == {:ok, expected})
  end

  test "the time limit holds", %{embedder: embedder} do
    texts = List.duplicate(String.duplicate("word ", 300), 500)
    started = System.monotonic_time(:millisecond)
    assert {:error, %{kind: :timeout} = error} = Embedder.embed(embedder, texts, timeout: 100)
    assert Exception.message(error) == "the embedder took too long: no vectors within 100 ms"
    assert System.monotonic_time(:millisecond) - started < 5_000
  end
end
