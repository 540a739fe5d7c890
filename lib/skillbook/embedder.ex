defmodule Skillbook.Embedder do
  @moduledoc ~S"""
  Turns texts into vectors, so that texts with a similar meaning are found: the behaviour of
  embedding models, and the function that calls them.

  An embedder is a struct whose module implements this behaviour. `Skillbook.Embedder.OpenAI`
  calls a server, `Skillbook.Embedder.Local` runs a model in this virtual machine, and
  `Skillbook.Embedder.Function` calls a function, for tests and for models of your own.

  A vector is a binary of 32-bit floats, little-endian, and has the length 1. So the similarity of
  two texts, from -1 to 1, is the sum of the products of their numbers.

  ## Examples

      iex> alias Skillbook.Embedder
      iex> embedder =
      ...>   Embedder.Function.new("letters", fn texts ->
      ...>     for text <- texts do
      ...>       for letter <- ["a", "b", "c"], do: length(String.split(text, letter)) - 1
      ...>     end
      ...>   end)
      iex> {:ok, [vector]} = Embedder.embed(embedder, ["abba"])
      iex> for <<number::float-32-little <- vector>>, do: Float.round(number, 3)
      [0.707, 0.707, 0.0]
      iex> Embedder.embed(embedder, ["xyz"]) |> elem(1) |> Exception.message()
      "the embedder's answer cannot be used: the vector of text 1 has only zeros"
  """

  alias Skillbook.EmbedderError
  alias Skillbook.Run.Worker
  alias Skillbook.Support.{Arguments, Options}

  @type t :: struct()

  @typedoc "32-bit floats, little-endian. Those that `embed/3` returns have the length 1."
  @type vector :: binary()

  @doc """
  Returns the vectors of the texts, in their order.

  The texts are valid UTF-8 and not too long, and there is at least one. `embed/3` normalises the
  vectors, checks them, and ends the process of this call at the time limit. The only option is
  `:timeout`.
  """
  @callback embed(t(), [String.t()], keyword()) ::
              {:ok, [vector() | [number()]]} | {:error, EmbedderError.t()}

  @doc """
  Returns the model's name and the number of dimensions of its vectors, `nil` if only an answer
  tells.

  Vectors are kept under this name. Models with different vectors need different names.
  """
  @callback info(t()) :: %{model: String.t(), size: pos_integer() | nil}

  @max_texts 10_000
  # Bytes of one text. Models read less.
  @max_text 128 * 1024
  # More than twice that of any known model.
  @max_size 16_384
  @default_timeout 60_000
  # A vector whose length differs by less is returned as it is.
  @tolerance 1.0e-6
  # Of 32-bit floats.
  @max_float 3.4028235e38

  @doc """
  Returns a vector for each text, in the order of the texts.

  Returns `{:ok, vectors}` or `{:error, %Skillbook.EmbedderError{}}`, also if the embedder raises.
  Without texts it returns an empty list, and the embedder is not called. At most 10,000 texts are
  accepted. Of each text the first 128 KiB are read at most; each embedder has smaller limits.

  Raises `ArgumentError` for texts that are not UTF-8, and `Skillbook.OptionError` for wrong
  options.

  ## Options

    * `:timeout` - milliseconds for all texts. Default: 60,000
  """
  @spec embed(t(), [String.t()], Skillbook.options()) ::
          {:ok, [vector()]} | {:error, EmbedderError.t()}
  def embed(embedder, texts, options \\ []) do
    options = Options.keywords(options)
    check!(embedder, texts, options)
    if texts == [], do: {:ok, []}, else: call(embedder, texts, options)
  end

  @doc false
  @spec embedder?(term()) :: boolean()
  def embedder?(%module{}) do
    Code.ensure_loaded?(module) and function_exported?(module, :embed, 3) and
      function_exported?(module, :info, 1)
  end

  def embedder?(_), do: false

  @doc "Returns the model's name and the size of its vectors, as the callback `c:info/1`."
  @spec info(t()) :: %{model: String.t(), size: pos_integer() | nil}
  def info(%module{} = embedder), do: module.info(embedder)

  defp check!(embedder, texts, options) do
    unless embedder?(embedder) do
      raise ArgumentError,
            "expected an embedder, such as the result of Skillbook.Embedder.OpenAI.new!/1, as " <>
              "the argument `embedder` of Skillbook.Embedder.embed/3, got: #{got(embedder)}"
    end

    Arguments.check!("Skillbook.Embedder.embed/3", texts: {:list, texts})

    with {text, index} <- texts |> Enum.with_index(1) |> Enum.find(&(not utf8?(elem(&1, 0)))) do
      raise ArgumentError,
            "expected UTF-8 texts as the argument `texts` of Skillbook.Embedder.embed/3, got " <>
              "as text #{index}: #{inspect(text, limit: 5, printable_limit: 100)}"
    end

    if length(texts) > @max_texts do
      raise ArgumentError,
            "expected at most #{@max_texts} texts as the argument `texts` of " <>
              "Skillbook.Embedder.embed/3, got #{length(texts)}; call it for a part at a time"
    end

    with {:error, error} <- Options.validate(options, "a call of an embedder", schema()),
         do: raise(error)
  end

  defp utf8?(text), do: is_binary(text) and String.valid?(text)

  defp schema, do: [timeout: {"a number of milliseconds", &Options.milliseconds?/1}]

  # In a process of its own, so that no embedder can take longer or crash its caller.
  defp call(%module{} = embedder, texts, options) do
    timeout = options[:timeout] || @default_timeout
    texts = Enum.map(texts, &cut(&1, @max_text))

    work = fn ->
      with {:ok, vectors} <- module.embed(embedder, texts, timeout: timeout),
           do: check(vectors, length(texts), info(embedder).size)
    end

    case nil |> Worker.start(Logger.metadata(), work) |> Worker.run(timeout) do
      {:ok, {:ok, _vectors} = result} ->
        result

      {:ok, {:error, %EmbedderError{}} = result} ->
        result

      {:ok, other} ->
        failed("expected {:ok, vectors} from #{inspect(module)}, got: #{got(other)}")

      {:crash, reason} ->
        failed("#{inspect(module)} ended with #{crash(reason)}")

      :timeout ->
        {:error, timed_out(timeout)}
    end
  end

  @doc false
  @spec timed_out(pos_integer()) :: EmbedderError.t()
  def timed_out(timeout),
    do: %EmbedderError{kind: :timeout, reason: "no vectors within #{timeout} ms"}

  @doc false
  # The start of a text, at most `max` bytes, without a part of a character.
  @spec cut(String.t(), pos_integer()) :: String.t()
  def cut(text, max) when byte_size(text) <= max, do: text

  def cut(text, max) do
    # The first byte that is left out continues no character.
    if :binary.at(text, max) in 0x80..0xBF,
      do: cut(text, max - 1),
      else: binary_part(text, 0, max)
  end

  defp check(vectors, count, size) when is_list(vectors) and length(vectors) == count do
    vectors
    |> Enum.with_index(1)
    |> Enum.reduce_while({[], size}, fn {vector, index}, {done, size} ->
      with {:ok, numbers} <- numbers(vector),
           :ok <- check_size(length(numbers), size),
           {:ok, unit} <- unit(vector, numbers) do
        {:cont, {[unit | done], length(numbers)}}
      else
        {:error, problem} -> {:halt, "the vector of text #{index} #{problem}"}
      end
    end)
    |> case do
      {done, _size} -> {:ok, Enum.reverse(done)}
      problem -> {:error, %EmbedderError{kind: :bad_answer, reason: problem}}
    end
  end

  defp check(vectors, count, _size) do
    got = if is_list(vectors), do: length(vectors), else: got(vectors)
    reason = "expected #{count} vectors, one for each text, got: #{got}"
    {:error, %EmbedderError{kind: :bad_answer, reason: reason}}
  end

  @not_numbers "has a value that is not a finite 32-bit number"

  defp numbers(vector) when is_binary(vector) do
    # NaN and infinity match no float.
    numbers = for <<number::float-32-little <- vector>>, do: number

    if length(numbers) * 4 == byte_size(vector),
      do: {:ok, numbers},
      else: {:error, @not_numbers}
  end

  defp numbers(vector) when is_list(vector) do
    if Enum.all?(vector, &(is_number(&1) and abs(&1) <= @max_float)),
      do: {:ok, vector},
      else: {:error, @not_numbers}
  end

  defp numbers(vector), do: {:error, "is neither a binary nor a list: #{got(vector)}"}

  defp check_size(0, _expected), do: {:error, "is empty"}

  defp check_size(size, _expected) when size > @max_size,
    do: {:error, "has #{size} numbers; at most #{@max_size} are accepted"}

  defp check_size(size, expected) when expected in [nil, size], do: :ok

  defp check_size(size, expected),
    do: {:error, "has #{size} numbers, expected #{expected}, the size of this model's vectors"}

  defp unit(vector, numbers) do
    # Squares of very small and very large numbers are lost without the division.
    largest = Enum.reduce(numbers, 0.0, &max(abs(&1), &2))

    if largest == 0 do
      {:error, "has only zeros"}
    else
      scaled = Enum.map(numbers, &(&1 / largest))
      length = :math.sqrt(Enum.reduce(scaled, 0.0, &(&1 * &1 + &2)))

      if is_binary(vector) and abs(length * largest - 1) < @tolerance,
        do: {:ok, vector},
        else: {:ok, for(number <- scaled, into: <<>>, do: <<number / length::float-32-little>>)}
    end
  end

  defp failed(reason), do: {:error, %EmbedderError{kind: :failed, reason: reason}}

  # Without arguments, which may have the texts.
  defp crash({%{__exception__: true} = error, _stack}),
    do: "#{inspect(error.__struct__)}: #{Exception.message(error)}"

  defp crash({{:nocatch, value}, _stack}), do: "the throw of #{got(value)}"
  defp crash(reason), do: got(reason)

  defp got(value), do: inspect(value, limit: 5, printable_limit: 100)
end
