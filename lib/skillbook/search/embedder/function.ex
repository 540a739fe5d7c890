defmodule Skillbook.Embedder.Function do
  @moduledoc """
  An embedder that calls a function, for tests and for models of your own.

      iex> alias Skillbook.Embedder
      iex> embedder = Embedder.Function.new("ones", &Enum.map(&1, fn _text -> [1, 0] end))
      iex> Embedder.embed(embedder, ["a", "b"])
      {:ok, [<<0, 0, 128, 63, 0, 0, 0, 0>>, <<0, 0, 128, 63, 0, 0, 0, 0>>]}
      iex> Embedder.info(embedder)
      %{model: "ones", size: nil}

  The function gets the list of texts. It returns one of:

    * a list with a vector for each text, either a list of numbers or a binary of 32-bit floats,
      little-endian; the length of a vector may be any but 0
    * `{:error, %Skillbook.EmbedderError{}}`

  It runs in a process of its own, which is ended at the time limit. Vectors are kept under the
  model's name, so a function with other vectors needs another name.
  """

  @behaviour Skillbook.Embedder

  alias Skillbook.{Embedder, EmbedderError}
  alias Skillbook.Support.Arguments

  @type fun_of_texts ::
          ([String.t()] -> [Embedder.vector() | [number()]] | {:error, EmbedderError.t()})
  @type t :: %__MODULE__{model: String.t(), function: fun_of_texts()}

  @enforce_keys [:model, :function]
  defstruct [:model, :function]

  @doc "Builds an embedder from the name of its model and a function of one argument."
  @spec new(String.t(), fun_of_texts()) :: t()
  def new(model, function) when is_function(function, 1) do
    Arguments.check!("Skillbook.Embedder.Function.new/2", model: {:text, model})
    %__MODULE__{model: model, function: function}
  end

  @impl true
  def embed(%{function: function}, texts, _options) do
    case function.(texts) do
      {:error, %EmbedderError{}} = error -> error
      vectors -> {:ok, vectors}
    end
  end

  @impl true
  def info(%{model: model}), do: %{model: model, size: nil}
end
