defmodule Skillbook.TestModel do
  @moduledoc false
  # Models for tests of the local embedder: a real one, and tiny ones of each family that are
  # written by `write/3`. Their weights are the same each time.

  alias Skillbook.Embedder.Library
  alias Skillbook.Support.JSON

  @words ~w([CLS] [PAD] [SEP] [UNK] the a invoice board report is due send to of and , .)
  @size 12
  @wide 20
  @layers 2
  @heads 3
  @positions 40

  @doc "The folder of a real model. Without it or the library, the error says what to do."
  @spec folder!() :: Path.t()
  def folder! do
    library!()

    System.get_env("SKILLBOOK_TEST_MODEL") ||
      raise "SKILLBOOK_TEST_MODEL is not set. To download the model and set it: " <>
              "bin/minilm-for-tests run mix test"
  end

  @spec library!() :: :ok
  def library! do
    with {:error, reason} <- Library.load(), do: raise(reason)
  end

  def families, do: ~w(bert distilbert mpnet roberta xlm-roberta)

  @doc """
  Writes a tiny model into a folder. `changes` are files: a map is merged into the JSON object of
  that file, a function gets the map of tensors, a text or `nil` replaces the file.
  """
  @spec write(Path.t(), String.t(), %{optional(String.t()) => term()}) :: Path.t()
  def write(folder, family, changes \\ %{}) do
    File.mkdir_p!(Path.join(folder, "1_Pooling"))

    files = %{
      "config.json" => config(family),
      "tokenizer.json" => tokenizer(),
      "sentence_bert_config.json" => %{"max_seq_length" => 24},
      "modules.json" => modules(),
      "1_Pooling/config.json" => %{"pooling_mode_mean_tokens" => true},
      "model.safetensors" => tensors(family)
    }

    for {name, content} <- Map.merge(files, changes, &change/3), content != nil do
      content = if name == "model.safetensors", do: safetensors(content), else: content
      content = if is_binary(content), do: content, else: JSON.encode(content)
      File.write!(Path.join(folder, name), content)
    end

    folder
  end

  defp change(_file, old, new) when is_map(new) and is_map(old), do: Map.merge(old, new)
  defp change(_file, old, new) when is_function(new), do: new.(old)
  defp change(_file, _old, new), do: new

  defp config("distilbert") do
    %{
      "model_type" => "distilbert",
      "dim" => @size,
      "n_layers" => @layers,
      "n_heads" => @heads,
      "hidden_dim" => @wide,
      "activation" => "gelu",
      "max_position_embeddings" => @positions,
      "vocab_size" => length(@words),
      "pad_token_id" => 1
    }
  end

  defp config(family) do
    %{
      "model_type" => family,
      "hidden_size" => @size,
      "num_hidden_layers" => @layers,
      "num_attention_heads" => @heads,
      "intermediate_size" => @wide,
      "hidden_act" => "gelu",
      "layer_norm_eps" => 1.0e-5,
      "max_position_embeddings" => @positions,
      "type_vocab_size" => if(family == "bert", do: 2, else: 1),
      "vocab_size" => length(@words),
      "pad_token_id" => 1
    }
  end

  defp modules do
    for {name, index} <- Enum.with_index(~w(Transformer Pooling Normalize)) do
      path = if name == "Transformer", do: "", else: "#{index}_#{name}"
      %{idx: index, name: "#{index}", path: path, type: "sentence_transformers.models.#{name}"}
    end
  end

  defp tokenizer do
    special = fn name, id -> %{"id" => name, "ids" => [id], "tokens" => [name]} end

    %{
      "version" => "1.0",
      "truncation" => nil,
      "padding" => nil,
      "added_tokens" => [],
      "normalizer" => %{"type" => "Lowercase"},
      "pre_tokenizer" => %{"type" => "Whitespace"},
      "post_processor" => %{
        "type" => "TemplateProcessing",
        "single" => [
          %{"SpecialToken" => %{"id" => "[CLS]", "type_id" => 0}},
          %{"Sequence" => %{"id" => "A", "type_id" => 0}},
          %{"SpecialToken" => %{"id" => "[SEP]", "type_id" => 0}}
        ],
        "pair" => [
          %{"Sequence" => %{"id" => "A", "type_id" => 0}},
          %{"Sequence" => %{"id" => "B", "type_id" => 1}}
        ],
        "special_tokens" => %{"[CLS]" => special.("[CLS]", 0), "[SEP]" => special.("[SEP]", 2)}
      },
      "decoder" => nil,
      "model" => %{
        "type" => "WordLevel",
        "vocab" => @words |> Enum.with_index() |> Map.new(),
        "unk_token" => "[UNK]"
      }
    }
  end

  # Names and shapes, as the transformers library has them.
  defp shapes(family) do
    embeddings =
      [
        {"embeddings.word_embeddings.weight", [length(@words), @size]},
        {"embeddings.position_embeddings.weight", [@positions, @size]}
      ] ++
        if(family in ["distilbert", "mpnet"],
          do: [],
          else: [
            {"embeddings.token_type_embeddings.weight",
             [if(family == "bert", do: 2, else: 1), @size]}
          ]
        ) ++
        if(family == "mpnet",
          do: [{"encoder.relative_attention_bias.weight", [32, @heads]}],
          else: []
        )

    {layer, names} =
      case family do
        "distilbert" ->
          {"transformer.layer",
           {~w(attention.q_lin attention.k_lin attention.v_lin attention.out_lin), "ffn.lin1",
            "ffn.lin2", ~w(sa_layer_norm output_layer_norm)}}

        "mpnet" ->
          {"encoder.layer",
           {~w(attention.attn.q attention.attn.k attention.attn.v attention.attn.o),
            "intermediate.dense", "output.dense", ~w(attention.LayerNorm output.LayerNorm)}}

        _ ->
          {"encoder.layer",
           {~w(attention.self.query attention.self.key attention.self.value
             attention.output.dense), "intermediate.dense", "output.dense",
            ~w(attention.output.LayerNorm output.LayerNorm)}}
      end

    {square, wide, narrow, norms} = names

    linear = fn name, out, inputs ->
      [{name <> ".weight", [out, inputs]}, {name <> ".bias", [out]}]
    end

    norm = fn name -> [{name <> ".weight", [@size]}, {name <> ".bias", [@size]}] end

    layers =
      for number <- 0..(@layers - 1),
          of = &"#{layer}.#{number}.#{&1}",
          part <-
            Enum.map(square, &linear.(of.(&1), @size, @size)) ++
              [linear.(of.(wide), @wide, @size), linear.(of.(narrow), @size, @wide)] ++
              Enum.map(norms, &norm.(of.(&1))),
          tensor <- part,
          do: tensor

    embeddings ++ norm.("embeddings.LayerNorm") ++ layers
  end

  @doc "The tensors of a model: the name of a type, a shape, and bytes."
  def tensors(family) do
    for {{name, shape}, index} <- family |> shapes() |> Enum.sort() |> Enum.with_index(),
        into: %{} do
      count = Enum.product(shape)
      offset = if name =~ ~r/norm\.weight/i, do: 1, else: 0

      data =
        for i <- 1..count, into: <<>> do
          hash = :erlang.phash2({index, i}, 65_536)
          <<offset + (hash / 65_536 - 0.5)::float-32-little>>
        end

      {name, {"F32", shape, data}}
    end
  end

  @doc "The bytes of a safetensors file with these tensors."
  def safetensors(bytes) when is_binary(bytes), do: bytes

  def safetensors(tensors) do
    {header, data} =
      Enum.reduce(Enum.sort(tensors), {%{}, <<>>}, fn {name, {type, shape, bytes}},
                                                      {header, data} ->
        offsets = [byte_size(data), byte_size(data) + byte_size(bytes)]

        {Map.put(header, name, %{"dtype" => type, "shape" => shape, "data_offsets" => offsets}),
         data <> bytes}
      end)

    json = JSON.encode(header)
    <<byte_size(json)::64-little, json::binary, data::binary>>
  end
end
