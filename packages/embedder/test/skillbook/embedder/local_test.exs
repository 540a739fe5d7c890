defmodule Skillbook.Embedder.LocalTest do
  use ExUnit.Case, async: true

  alias Skillbook.Embedder
  alias Skillbook.Embedder.Local
  alias Skillbook.Support.JSON
  alias Skillbook.TestModel

  # Vectors of sentence-transformers, by fixtures/embeddings/minilm.py.
  @expected Skillbook.Test.Checkout.path("test/support/fixtures/embeddings/minilm.json")

  # Vectors of the transformers library for tiny models, by fixtures/embeddings/families.py.
  @families Skillbook.Test.Checkout.path("test/support/fixtures/embeddings/families.json")

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
    assert Embedder.info(embedder) == %{model: "all-MiniLM-L6-v2 78c6fba5a22734e7", size: 384}
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

  describe "a folder" do
    @describetag :tmp_dir

    test "of each family is read", %{tmp_dir: folder} do
      {:ok, families} = @families |> File.read!() |> JSON.decode()
      assert Map.keys(families) == TestModel.families()

      for {family, rows} <- families, {pooling, fields} <- poolings() do
        folder = Path.join(folder, "#{family}-#{pooling}-#{map_size(fields)}")
        TestModel.write(folder, family, %{"1_Pooling/config.json" => fields})
        embedder = Local.new!(folder)
        assert %{size: 12, max_tokens: 24} = embedder
        {:ok, vectors} = Embedder.embed(embedder, Enum.map(rows, & &1["text"]))

        for {row, vector} <- Enum.zip(rows, vectors) do
          assert difference(floats(vector), row[pooling]) < 1.0e-4,
                 "#{family}, #{pooling}: #{row["text"]}"
        end
      end
    end

    # As older and newer releases of sentence-transformers write it.
    defp poolings do
      mean = "pooling_mode_mean_tokens"

      [
        {"mean", %{mean => true}},
        {"mean", %{"pooling_mode" => "mean", mean => nil}},
        {"cls", %{mean => false, "pooling_mode_cls_token" => true}},
        {"cls", %{"pooling_mode" => "cls", mean => nil, "include_prompt" => true}}
      ]
    end

    test "may have weights with a prefix, of 16 bits, or further files", %{tmp_dir: folder} do
      prefixed = &Map.new(&1, fn {name, tensor} -> {"bert." <> name, tensor} end)

      {:ok, [expected]} = folder |> written("a", %{}) |> Local.new!() |> Embedder.embed(["due"])

      for {name, changes, tolerance} <- [
            {"prefix", %{"model.safetensors" => prefixed}, 0.0},
            {"bf16", %{"model.safetensors" => &Map.new(&1, fn t -> halved(t) end)}, 0.02},
            {"only the model", %{"modules.json" => nil, "1_Pooling/config.json" => nil}, 0.0},
            {"no length", %{"sentence_bert_config.json" => nil}, 0.0},
            {"a long number as the length",
             %{
               "sentence_bert_config.json" => nil,
               "tokenizer_config.json" =>
                 ~s({"model_max_length": 1000000000000000019884624838656})
             }, 0.0}
          ] do
        embedder = folder |> written(name, changes) |> Local.new!()
        {:ok, [vector]} = Embedder.embed(embedder, ["due"])
        assert difference(floats(vector), floats(expected)) <= tolerance, name
        if name =~ "length", do: assert(embedder.max_tokens == 40)
      end
    end

    defp halved({name, {"F32", shape, data}}) do
      {name,
       {"BF16", shape, for(<<_low::16, high::binary-size(2) <- data>>, into: <<>>, do: high)}}
    end

    defp written(folder, name, changes),
      do: folder |> Path.join(name) |> TestModel.write("bert", changes)

    test "is told from another by its name", %{tmp_dir: folder} do
      names =
        for changes <- [
              %{},
              %{"sentence_bert_config.json" => %{"max_seq_length" => 23}},
              %{"sentence_bert_config.json" => %{"do_lower_case" => true}},
              %{"1_Pooling/config.json" => %{"pooling_mode" => "cls"}},
              %{"tokenizer.json" => %{"normalizer" => nil}},
              %{"config.json" => %{"hidden_act" => "relu"}},
              %{"config.json" => %{"layer_norm_eps" => 1.0e-6}},
              %{"model.safetensors" => &Map.update!(&1, norm(), fn t -> scaled(t) end)}
            ] do
          folder |> written("m", changes) |> Local.new!() |> Embedder.info() |> Map.fetch!(:model)
        end

      assert names == Enum.uniq(names)
      assert Enum.all?(names, &(&1 =~ ~r/\Am [0-9a-f]{16}\z/))
      embedder = folder |> written("m", %{}) |> Local.new!(name: "mine", threads: 1)
      assert Embedder.info(embedder) == %{model: "mine", size: 12}
    end

    defp norm, do: "embeddings.LayerNorm.bias"

    defp scaled({type, shape, <<number::float-32-little, rest::binary>>}),
      do: {type, shape, <<number * 2::float-32-little, rest::binary>>}

    test "that is wrong is an error that names the file", %{tmp_dir: folder} do
      weights = fn fun -> %{"model.safetensors" => fun} end
      config = fn fields -> %{"config.json" => fields} end
      word = "embeddings.word_embeddings.weight"
      header = fn json -> <<byte_size(json)::64-little>> <> json end
      safetensors = "expected a safetensors file, got one with an error: "
      tokenizers = "tokenizer.json: expected a file of the tokenizers library, got an error: "
      deep = String.duplicate("[", 100_000)

      rows = [
        {%{"config.json" => nil},
         "config.json: not found; expected the folder of a sentence-transformers model, with " <>
           "config.json, tokenizer.json and model.safetensors"},
        {%{"tokenizer.json" => nil}, "tokenizer.json: not found"},
        {%{"model.safetensors" => nil}, "model.safetensors: not found"},
        {%{"1_Pooling/config.json" => nil}, "1_Pooling/config.json: not found"},
        {%{"config.json" => "[]"}, "config.json: expected a JSON object, got []"},
        {%{"config.json" => ""},
         "config.json: expected JSON, got an error: EOF while parsing a value at line 1 " <>
           "column 0"},
        {%{"config.json" => deep},
         "config.json: expected JSON, got an error: recursion limit exceeded at line 1 " <>
           "column 128"},
        {%{"config.json" => String.duplicate(" ", 1_048_577)},
         "config.json: is larger than 1 MiB"},
        {config.(%{"model_type" => "gpt2"}),
         ~s(config.json: expected "bert", "distilbert", "mpnet", "roberta" or "xlm-roberta" ) <>
           ~s(as `model_type`, got "gpt2")},
        {config.(%{"model_type" => nil}),
         ~s(config.json: expected "bert", "distilbert", "mpnet", "roberta" or "xlm-roberta" ) <>
           ~s(as `model_type`, got nothing)},
        {config.(%{"hidden_size" => 0}),
         "config.json: expected a whole number from 1 to 8192 as `hidden_size`, got 0"},
        {config.(%{"hidden_size" => 1.0e99}),
         "config.json: expected a whole number from 1 to 8192 as `hidden_size`, got 1e+99"},
        {config.(%{"num_attention_heads" => 5}),
         "config.json: expected a divisor of 12 as `num_attention_heads`, got 5"},
        {config.(%{"num_hidden_layers" => 129}),
         "config.json: expected a whole number from 1 to 128 as `num_hidden_layers`, got 129"},
        {config.(%{"intermediate_size" => 65_537}),
         "config.json: expected a whole number from 1 to 65536 as `intermediate_size`, " <>
           "got 65537"},
        {config.(%{"vocab_size" => "18"}),
         ~s(config.json: expected a whole number from 1 to 2000000 as `vocab_size`, got "18")},
        {config.(%{"max_position_embeddings" => 7}),
         "config.json: expected a whole number from 8 to 32768 as `max_position_embeddings`, " <>
           "got 7"},
        {config.(%{"hidden_act" => "silu"}),
         ~s(config.json: expected "gelu", "gelu_new", "gelu_pytorch_tanh" or "relu" as ) <>
           ~s(`hidden_act`, got "silu")},
        {config.(%{"position_embedding_type" => "relative_key"}),
         ~s(config.json: expected "absolute" as `position_embedding_type`, got "relative_key")},
        {config.(%{"is_decoder" => true}),
         "config.json: expected false as `is_decoder`, got true"},
        {config.(%{"layer_norm_eps" => -1}),
         "config.json: expected a number from 0 to 1 as `layer_norm_eps`, got -1"},
        {%{"sentence_bert_config.json" => %{"max_seq_length" => 0}},
         "sentence_bert_config.json: expected a whole number from 8 to 1000000 as " <>
           "`max_seq_length`, got 0"},
        {%{"config_sentence_transformers.json" => %{"default_prompt_name" => "query"}},
         ~s(config_sentence_transformers.json: expected no prompt as `default_prompt_name`, ) <>
           ~s(got "query")},
        {%{"modules.json" => "{}"},
         "modules.json: expected a list of the modules Transformer, Pooling and Normalize, " <>
           "got {}"},
        {%{"modules.json" => ~s([{"type": "st.Dense", "path": "2_Dense"}])},
         "modules.json: expected a list of the modules Transformer, Pooling and Normalize, " <>
           ~s(got {"type":"st.Dense","path":"2_Dense"})},
        {%{"modules.json" => ~s([{"type": "st.Pooling", "path": "../secret"}])},
         ~s(modules.json: expected a folder beside it, got "../secret")},
        {%{"modules.json" => ~s([{"type": "st.Pooling", "path": ""}])},
         "config.json: expected either pooling_mode_mean_tokens or pooling_mode_cls_token, " <>
           "got none"},
        {%{"modules.json" => ~s([{"type": "st.Pooling", "path": "/etc"}])},
         ~s(modules.json: expected a folder beside it, got "/etc")},
        {%{"modules.json" => ~s([{"type": "st.Transformer", "path": "0_T"}])},
         ~s(modules.json: expected the path "" of the module Transformer, got "0_T"; use that ) <>
           "folder's files"},
        {%{"1_Pooling/config.json" => %{"pooling_mode_max_tokens" => true}},
         "1_Pooling/config.json: expected either pooling_mode_mean_tokens or " <>
           "pooling_mode_cls_token, got pooling_mode_mean_tokens, pooling_mode_max_tokens"},
        {%{"1_Pooling/config.json" => "{}"},
         "1_Pooling/config.json: expected either pooling_mode_mean_tokens or " <>
           "pooling_mode_cls_token, got none"},
        {%{"1_Pooling/config.json" => ~s({"pooling_mode": "max"})},
         ~s(1_Pooling/config.json: expected "mean" or "cls" as `pooling_mode`, got "max")},
        {%{"tokenizer.json" => "{}"}, tokenizers},
        {%{"tokenizer.json" => deep}, tokenizers},
        {%{"model.safetensors" => ""}, "model.safetensors: #{safetensors}"},
        {%{"model.safetensors" => "abc"}, "model.safetensors: #{safetensors}"},
        {%{"model.safetensors" => <<10_000_000_000::64-little>> <> "{}"},
         "model.safetensors: #{safetensors}"},
        {%{"model.safetensors" => <<-1::64-little>> <> "{}"},
         "model.safetensors: #{safetensors}"},
        {%{"model.safetensors" => header.(deep)}, "model.safetensors: #{safetensors}"},
        {%{
           "model.safetensors" =>
             header.(
               ~s({"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}})
             )
         }, "model.safetensors: #{safetensors}"},
        {%{
           "model.safetensors" =>
             header.(~s({"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}))
         }, "model.safetensors: #{safetensors}"},
        {%{
           "model.safetensors" => fn tensors ->
             bytes = TestModel.safetensors(tensors)
             binary_part(bytes, 0, byte_size(bytes) - 1)
           end
         }, "model.safetensors: #{safetensors}"},
        {weights.(&Map.delete(&1, norm())),
         "model.safetensors: expected a tensor of the shape [12] as " <>
           "embeddings.LayerNorm.bias, got nothing"},
        {weights.(&Map.put(&1, norm(), {"F32", [2, 6], elem(&1[norm()], 2)})),
         "model.safetensors: expected the shape [12] as embeddings.LayerNorm.bias, got [2, 6]"},
        {weights.(&Map.put(&1, norm(), {"I32", [12], elem(&1[norm()], 2)})),
         "model.safetensors: expected F32, F16 or BF16 as embeddings.LayerNorm.bias, got I32"},
        {weights.(&Map.put(&1, norm(), {"F32", [12], :binary.copy(<<0, 0, 0xC0, 0x7F>>, 12)})),
         "model.safetensors: expected finite numbers as embeddings.LayerNorm.bias, got NaN"},
        {config.(%{"vocab_size" => 18}),
         "model.safetensors: expected the shape [18, 12] as #{word}, got [17, 12]"}
      ]

      for {{changes, reason}, index} <- Enum.with_index(rows) do
        folder = written(folder, "#{index}", changes)
        assert {:error, error} = Local.new(folder)
        message = Exception.message(error)
        expected = "the embedder's model cannot be used: #{folder}: #{reason}"
        assert error.kind == :folder

        # The rest is the libraries' text.
        if String.ends_with?(reason, ": "),
          do: assert(String.starts_with?(message, expected)),
          else: assert(message == expected)
      end
    end

    test "may lack or be no folder", %{tmp_dir: folder} do
      file = Path.join(folder, "file")
      File.write!(file, "")

      for {path, reason} <- [
            {Path.join(folder, "none"), "config.json: not found; expected the folder of a"},
            {file, "config.json: cannot be read: Not a directory (os error 20)"},
            {"", "config.json: not found; expected the folder of a"}
          ] do
        assert {:error, error} = Local.new(path)

        assert String.starts_with?(
                 Exception.message(error),
                 "the embedder's model cannot be used: #{path}: #{reason}"
               )
      end

      assert {:error, error} = Local.new(<<255>>)

      assert Exception.message(error) ==
               "the embedder's model cannot be used: expected a path in UTF-8, got: <<255>>"

      File.rm!(Path.join(written(folder, "device", %{}), "config.json"))
      File.ln_s!("/dev/zero", Path.join(folder, "device/config.json"))
      assert {:error, error} = Local.new(Path.join(folder, "device"))
      assert Exception.message(error) =~ "config.json: expected a file, got a folder or a device"
    end

    test "whose tokens are not its own fails with each text", %{tmp_dir: folder} do
      vocabulary = fn words ->
        %{"model" => %{"type" => "WordLevel", "vocab" => words, "unk_token" => "[UNK]"}}
      end

      for {words, post, text, reason} <- [
            {%{"[CLS]" => 0, "[SEP]" => 2, "[UNK]" => 99}, true, "x",
             "tokenizer.json: expected tokens below 17, the size of the model's vocabulary, " <>
               "got 99"},
            {%{"[UNK]" => 3}, false, "",
             ~s(tokenizer.json: expected at least one token for a text, got none for "")}
          ] do
        fields = vocabulary.(words)
        fields = if post, do: fields, else: Map.put(fields, "post_processor", nil)
        folder = written(folder, "tokens", %{"tokenizer.json" => fields})
        assert {:error, error} = folder |> Local.new!() |> Embedder.embed([text])

        assert Exception.message(error) ==
                 "the embedder's model cannot be used: #{folder}: #{reason}"
      end
    end

    test "with random changes is a model or an error", %{tmp_dir: folder} do
      :rand.seed(:exsss, {1, 2, 3})
      files = ~w(config.json tokenizer.json modules.json 1_Pooling/config.json model.safetensors)

      for round <- 1..300 do
        folder = written(folder, "#{rem(round, 5)}", %{})
        path = Path.join(folder, Enum.random(files))
        File.write!(path, path |> File.read!() |> changed())

        with {:ok, embedder} <- Local.new(folder) do
          assert embedder.size == 12

          case Embedder.embed(embedder, ["the report is due", ""]) do
            {:ok, vectors} -> assert Enum.map(vectors, &byte_size/1) == [48, 48]
            {:error, error} -> assert error.kind in [:folder, :bad_answer]
          end
        end
      end
    end

    defp changed(bytes) do
      # The first bytes matter most.
      place = min(:rand.uniform(byte_size(bytes)), :rand.uniform(byte_size(bytes))) - 1
      {before, <<_, rest::binary>>} = :erlang.split_binary(bytes, place)

      case :rand.uniform(4) do
        1 -> before
        2 -> before <> rest
        3 -> before <> <<:rand.uniform(256) - 1>> <> rest
        4 -> before <> Enum.random(["0", "-", "9999999", "\"", "]", "}", "{", "null"]) <> rest
      end
    end
  end

  @build "set `config :skillbook, embedder: :local` in config/config.exs, or " <>
           "SKILLBOOK_EMBED=1 in the environment, and run mix deps.compile skillbook_embedder " <>
           "--force; in the package's own folder: SKILLBOOK_EMBED=1 mix compile"

  @tag :tmp_dir
  test "without its library the error says how to build it", %{tmp_dir: folder} do
    File.mkdir_p!(Path.join(folder, "skillbook_embedder/priv/native"))
    ebin = Path.join(folder, "skillbook_embedder/ebin")
    File.ln_s!(Application.app_dir(:skillbook_embedder, "ebin"), ebin)
    below = for name <- [:skillbook, :skillbook_http], do: Application.app_dir(name, "ebin")
    code = "{:error, e} = Skillbook.Embedder.Local.new(\"a\"); IO.write(Exception.message(e))"

    message = fn ->
      paths = Enum.flat_map([ebin | below], &["-pa", &1])
      {message, 0} = System.cmd("elixir", paths ++ ["-e", code])
      message
    end

    assert message.() == "the local embedder is not built: " <> @build
    library = "skillbook_embedder/priv/native/libskillbook_embed.so"
    File.write!(Path.join(folder, library), "no library")
    broken = message.()

    assert broken =~
             ~r/\Athe local embedder is not built: the library cannot be loaded \(.+\); to/

    assert String.ends_with?(broken, "; to build it again, " <> @build)
  end

  test "wrong options are errors that name them" do
    for {options, message} <- [
          {[threads: 0],
           "expected a whole number from 1 to 1024 as the option :threads of a local " <>
             "embedder, got: 0"},
          {[name: nil], "expected text as the option :name of a local embedder, got: nil"},
          {[batch: 1],
           "unknown option :batch for a local embedder. The options are :threads, :name"}
        ] do
      assert {:error, error} = Local.new("folder", options)
      assert Exception.message(error) == message
    end
  end
end
