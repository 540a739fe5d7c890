defmodule Skillbook.Embedder.OpenAITest do
  use ExUnit.Case, async: true

  use Skillbook.ServiceConformance,
    client: Skillbook.Embedder.OpenAI,
    subject: "an embedder",
    whose: "the embedder",
    call: &Skillbook.Embedder.embed(&1, ["a"]),
    own: [:dimensions, :encoding, :batch, :batch_bytes, :max_text, :name],
    urls: [
      {"http://h", "http://h/v1/embeddings"},
      {"http://h/", "http://h/v1/embeddings"},
      {"http://h/v2", "http://h/v2/embeddings"},
      {"http://h/v1/embeddings/", "http://h/v1/embeddings"},
      {"http://h/openai?api-version=1", "http://h/openai/embeddings?api-version=1"}
    ]

  alias Skillbook.Embedder
  alias Skillbook.Embedder.OpenAI
  alias Skillbook.Test.{ChatServer, EmbeddingServer, HTTPServer}

  doctest Skillbook.Embedder.OpenAI

  # The result and the delays before retries.
  defp embed(script, texts, options \\ [], call \\ []) do
    {_server, url} = EmbeddingServer.start(script)
    ask(url, texts, options, call)
  end

  defp ask(url, texts, options, call) do
    test = self()
    sleep = &send(test, {:slept, &1})
    embedder = OpenAI.new!(Keyword.merge([url: url, model: "m", sleep: sleep], options))
    {Embedder.embed(embedder, texts, call), slept()}
  end

  defp slept do
    receive do
      {:slept, delay} -> [delay | slept()]
    after
      0 -> []
    end
  end

  defp requests do
    receive do
      {:embed, request} -> [request | requests()]
    after
      0 -> []
    end
  end

  defp inputs, do: for(request <- requests(), do: request.body["input"])
  defp f32(numbers), do: for(n <- numbers, into: <<>>, do: <<n::float-32-little>>)

  defp similarity(a, b) do
    floats = fn vector -> for <<n::float-32-little <- vector>>, do: n end
    Enum.zip(floats.(a), floats.(b)) |> Enum.map(fn {a, b} -> a * b end) |> Enum.sum()
  end

  defp ones(count), do: for(_ <- 1..count, do: [1])

  test "vectors come in the order of their indices, in either encoding" do
    item = fn index, embedding -> %{object: "embedding", index: index, embedding: embedding} end
    encoded = [0, -2.0] |> f32() |> Base.encode64()

    for data <- [
          [item.(0, [3, 4]), item.(1, [0, -2.0])],
          [item.(1, [0, -2.0]), item.(0, [3, 4])],
          [item.(1, encoded), item.(0, [0.3, 0.4])]
        ] do
      assert {{:ok, vectors}, []} = embed([EmbeddingServer.data(data)], ["a", "b"])
      assert vectors == [f32([0.6, 0.8]), f32([0, -1])]
      assert [%{headers: headers, body: body}] = requests()
      assert body == %{"model" => "m", "input" => ["a", "b"]}
      refute Map.has_key?(headers, "authorization")
    end
  end

  test "options become fields that the server accepts" do
    answer = EmbeddingServer.answer([[1, 0]])
    assert {{:ok, [_]}, []} = embed([answer], ["a"], dimensions: 2, encoding: :base64)
    assert [%{body: body}] = requests()

    assert body ==
             %{
               "model" => "m",
               "input" => ["a"],
               "dimensions" => 2,
               "encoding_format" => "base64"
             }
  end

  test "texts are sent in requests of limited size" do
    for {texts, options, expected} <- [
          {~w(a b c), [], [~w(a b c)]},
          {~w(a b c), [batch: 2], [~w(a b), ~w(c)]},
          {~w(a b c), [batch: 1], [~w(a), ~w(b), ~w(c)]},
          {~w(aaa bb c d), [batch_bytes: 5], [~w(aaa bb), ~w(c d)]},
          {~w(aaa bb c d), [batch_bytes: 4], [~w(aaa), ~w(bb c d)]},
          {~w(aaaa b), [batch_bytes: 1], [~w(aaaa), ~w(b)]},
          {["aébc", "é"], [max_text: 2], [["a", "é"]]},
          {["é", ""], [max_text: 1], [[" ", " "]]}
        ] do
      script = for chunk <- expected, do: EmbeddingServer.answer(ones(length(chunk)))
      assert {{:ok, vectors}, []} = embed(script, texts, options)
      assert length(vectors) == length(texts)
      assert inputs() == expected
    end

    texts = for n <- 1..130, do: "#{n}"
    script = for count <- [64, 64, 2], do: EmbeddingServer.answer(ones(count))
    assert {{:ok, _}, []} = embed(script, texts)
    assert Enum.map(inputs(), &length/1) == [64, 64, 2]
  end

  @used "the embedder's answer cannot be used: "

  test "wrong answers are errors that are not retried" do
    item = fn index, embedding -> %{index: index, embedding: embedding} end
    numbers = "the vector of text 2 has a value that is not a finite 32-bit number"
    nan = Base.encode64(<<0x7FC00000::32-little>>)

    for {steps, reason} <- [
          {EmbeddingServer.answer([[1]]), "expected 2 vectors, one for each text, got: 1"},
          {EmbeddingServer.answer(ones(3)), "expected 2 vectors, one for each text, got: 3"},
          {EmbeddingServer.answer([[1], [1, 2]]),
           "the vector of text 2 has 2 numbers, expected 1, the size of this model's vectors"},
          {EmbeddingServer.answer([[1], [0]]), "the vector of text 2 has only zeros"},
          {EmbeddingServer.answer([[1], [nil]]), numbers},
          {EmbeddingServer.answer([[1], [1.0e300]]), numbers},
          {EmbeddingServer.answer([[1], ["1"]]), numbers},
          {EmbeddingServer.answer([[1], nan]), numbers},
          {EmbeddingServer.answer([[1], "%%%"]), "expected base64 as an embedding, got: %%%"},
          {EmbeddingServer.data([item.(0, [1]), item.(0, [1])]),
           "expected the indices 0 to 1, got no 1 in: [0]"},
          {EmbeddingServer.data([item.(1, [1]), item.(2, [1])]),
           "expected the indices 0 to 1, got no 0 in: [1, 2]"},
          {EmbeddingServer.data([item.(0, [1]), %{embedding: [1]}]),
           "expected an index and an embedding of each vector, got: %{\"embedding\" => [1]}"},
          {EmbeddingServer.data([[1], [1]]),
           "expected an index and an embedding of each vector, got: [1]"},
          {EmbeddingServer.json(%{embeddings: []}),
           "expected a JSON object with `data`, got: {\"embeddings\":[]}"},
          {EmbeddingServer.json("[1, 2]"), "expected a JSON object with `data`, got: [1, 2]"},
          {EmbeddingServer.json(~s({"data": [{"index": 0, "embedding": [NaN]}]})),
           "expected JSON, got application/json (line 1, column 38: expected value): " <>
             ~s({"data": [{"index": 0, "embedding": [NaN]}]})},
          {HTTPServer.answer("<h1>Hi</h1>", [{"content-type", "text/html"}]),
           "expected JSON, got text/html (line 1, column 1: expected value): <h1>Hi</h1>"},
          {[{:raw, "SSH-2.0-OpenSSH\r\n\r\n"}], "invalid HTTP/1.1: invalid HTTP version parsed"}
        ] do
      assert {{:error, error}, []} = embed([steps, []], ["a", "b"])
      assert {error.kind, Exception.message(error)} == {:bad_answer, @used <> reason}
    end
  end

  test "a size that was not asked for is an error" do
    assert {{:error, error}, []} =
             embed([EmbeddingServer.answer([[1, 0, 0]])], ["a"], dimensions: 2)

    assert Exception.message(error) ==
             @used <>
               "the vector of text 1 has 3 numbers, expected 2, the size of this model's vectors"
  end

  test "an answer without end is cut off" do
    head = {:raw, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"}
    script = [[head, {:endless, String.duplicate(" ", 65_536)}]]
    assert {{:error, error}, []} = embed(script, ["a"], dimensions: 2)
    assert Exception.message(error) == @used <> "it has more than 65600 bytes"
    assert_receive :hung_up
  end

  test "an answer of very many values is refused before they take memory" do
    vector = "[" <> String.duplicate("1,", 9_000_000) <> "1]"
    item = ~s({"index": 0, "embedding": #{vector}})
    before = :erlang.memory(:total)
    texts = for number <- 1..64, do: "text #{number}"
    body = ~s({"data": [#{item}]})
    assert {{:error, error}, []} = embed([HTTPServer.answer(body)], texts)
    assert error.kind == :bad_answer
    assert Exception.message(error) =~ "expected at most 1052776 keys and values, got more"
    # The values would take 700 MB.
    assert :erlang.memory(:total) - before < 200_000_000
  end

  test "hidden characters of an answer are shown by their codes" do
    body = EmbeddingServer.json(~s({"error": {"message": "a\\u001b[2J\\u202Eb\\nc"}}))
    assert {{:error, error}, _} = embed([body], ["a"], retries: 0)
    assert Exception.message(error) == "the embedder's server failed: a [2J\\u{202E}b c"
  end

  test "a text that is too long is refused with the option to set" do
    hint =
      "; if a text is longer than the model's context, set the option :max_text of the " <>
        "embedder lower (now 8192 bytes)"

    for {steps, kind, message} <- [
          {ChatServer.refusal(400, "the input is too long"), :refused,
           "the embedder's server refused the request (400): URL/v1/embeddings: the input is " <>
             "too long"},
          {ChatServer.refusal(500, "input is too large to process. increase the batch size"),
           :server,
           "the embedder's server failed (500): input is too large to process. increase the " <>
             "batch size"}
        ] do
      assert {{:error, error}, []} = embed([steps, []], ["a"])
      assert error.kind == kind
      message = message <> hint
      assert String.replace(Exception.message(error), ~r"http://localhost:\d+", "URL") == message
    end
  end

  test "a redirect is not followed" do
    redirect = [{:head, 307, [{"location", "https://b/v1"}, {"content-length", "0"}]}]
    assert {{:error, error}, []} = embed([redirect, []], ["a"])

    assert Exception.message(error) ==
             "the embedder's answer cannot be used (307): the server redirects to " <>
               "https://b/v1; use that as the URL"
  end

  test "an answer that is cut off or an error is asked for again" do
    for steps <- [
          [{:head, 200, [{"content-length", "100"}]}, {:raw, "{"}],
          EmbeddingServer.json(%{error: %{message: "oh"}})
        ] do
      assert {{:ok, [_]}, [delay]} = embed([steps, EmbeddingServer.answer([[1]])], ["a"])
      assert delay in 250..500
    end
  end

  test "the time of the call limits that of the embedder" do
    {micro, {{:error, error}, []}} =
      :timer.tc(fn -> embed([[:silent]], ["a"], [], timeout: 200) end)

    assert error.kind == :timeout
    assert micro < 5_000_000
  end

  test "wrong options are errors that name them" do
    for {options, message} <- [
          {[model: "m"], "an embedder needs the option :url"},
          {[dimensions: 0],
           "expected a whole number from 1 to 16384, or nil as the option :dimensions of an " <>
             "embedder, got: 0"},
          {[dimensions: 16_385],
           "expected a whole number from 1 to 16384, or nil as the option :dimensions of an " <>
             "embedder, got: 16385"},
          {[encoding: :hex],
           "expected :float or :base64 as the option :encoding of an embedder, got: :hex"},
          {[batch: 2049],
           "expected a whole number from 1 to 2048 as the option :batch of an embedder, " <>
             "got: 2049"},
          {[max_text: 0],
           "expected a whole number from 1 as the option :max_text of an embedder, got: 0"},
          {[name: ""], "expected text or nil as the option :name of an embedder, got: \"\""}
        ] do
      assert {:error, error} = OpenAI.new(options)
      assert Exception.message(error) == message
    end
  end

  describe "llama.cpp's server" do
    setup do: %{url: HTTPServer.llama()}

    test "gives vectors", %{url: url} do
      long = String.duplicate("word ", 1000)
      texts = ["", "hello", "hello there", "grüße 🎉 長", long, "hello"]

      for options <- [[], [batch: 1], [encoding: :base64]] do
        options = [url: url, model: "embed", max_text: 2000] ++ options
        assert {:ok, vectors} = options |> OpenAI.new!() |> Embedder.embed(texts)
        assert Enum.map(vectors, &byte_size/1) == List.duplicate(64 * 4, 6)
        # A batch is calculated with other roundings than a single text.
        assert similarity(Enum.at(vectors, 1), Enum.at(vectors, 5)) > 0.9999
        assert similarity(Enum.at(vectors, 1), Enum.at(vectors, 2)) < 0.9999
      end
    end

    test "ignores dimensions, which is an error", %{url: url} do
      embedder = OpenAI.new!(url: url, model: "embed", dimensions: 32)
      assert {:error, error} = Embedder.embed(embedder, ["hello"])

      assert Exception.message(error) ==
               @used <>
                 "the vector of text 1 has 64 numbers, expected 32, the size of this model's " <>
                 "vectors"
    end

    test "refuses a model without embeddings", %{url: url} do
      embedder = OpenAI.new!(url: url, model: "chat", retries: 0)
      assert {:error, error} = Embedder.embed(embedder, ["hello"])

      assert Exception.message(error) ==
               "the embedder's server failed (500): Llama model must be created with " <>
                 "embedding=True to call this method"
    end
  end
end
