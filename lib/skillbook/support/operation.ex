defmodule Skillbook.Support.Operation do
  @moduledoc false
  # Declares an operation of a book: its input, who may ask for it, the function that does it, and
  # its output. `c:Skillbook.Part.operations/0` lists those of a package.
  #
  # The API and its description, forms of the page, and switches and JSON of the command line are
  # made from these declarations, so an operation is added, and its limits change, in one place.
  #
  # Rights stay with the function: a view shows what its caller may see, and an operator's
  # operation checks `operator: true`. `:caller` says who an interface lets through.
  #
  # ## Fields
  #
  #   * `:name` - that of the function of `Skillbook`, if there is one
  #   * `:subject` - the name of the text that it is about, such as `:name` or `:ref`; or `nil`
  #   * `:caller` - `:reader`, with a view; `:operator`, with a view and the option `:operator`;
  #     `:trusted`, with the name of the book
  #   * `:input` - the other fields, in the order in which they are read, with their types
  #   * `:output` - the shape of its result as JSON, or `{name, shape}` if that is a field beside
  #     the subject
  #   * `:refused` - the status of an error other than a missing entry or a failed database
  #   * `:run` - a function of the view or the book, the subject if there is one, and the input
  #     with `:by` and the like as options

  alias Skillbook.Support.{Number, UntilError}
  alias Skillbook.{SQL, UnknownSkillError}

  @typedoc """
  `{:parsed, expected, fun}` calls the function with the text and the fields before it; `expected`
  completes the error.
  """
  @type type ::
          {:text, max :: pos_integer()}
          | {:texts, max :: pos_integer()}
          | {:one_of, [atom()]}
          | {:number, min :: integer(), max :: integer()}
          | {:parsed, String.t(), (String.t(), keyword() -> {:ok, term()} | :error)}
          | :boolean

  @typedoc """
  The fields of an object by their types, each a name or, for `:object` and `:objects`, a name
  with the shape of its value. A type with a question mark may be `nil`. A shape in a list is a
  list of such objects.
  """
  @type shape :: keyword([atom() | {atom(), shape()}]) | [shape()]

  @type t :: %__MODULE__{
          name: atom(),
          doc: String.t(),
          subject: atom() | nil,
          caller: :reader | :operator | :trusted,
          input: [{atom(), {type(), doc :: String.t()}}],
          output: shape() | {atom(), shape()},
          refused: 400..499,
          run: function()
        }

  @enforce_keys [:name, :doc, :run]
  defstruct [:name, :doc, :run, :subject, caller: :reader, input: [], output: [], refused: 422]

  @doc """
  Reads the input from the fields of a query or a form. Those that are missing are left out, so
  the function decides about them, and so is an empty text.
  """
  @spec read(t(), %{String.t() => term()}) :: {:ok, keyword()} | {:error, String.t()}
  def read(%__MODULE__{input: input}, fields) do
    UntilError.reduce(input, [], fn {name, {type, _doc}}, read ->
      case value(type, name, fields[Atom.to_string(name)], read) do
        {:ok, nil} -> {:ok, read}
        {:ok, value} -> {:ok, [{name, value} | read]}
        {:error, expected} -> {:error, "Expected #{expected}."}
      end
    end)
  end

  defp value(_type, _name, nil, _read), do: {:ok, nil}
  defp value({:text, _max}, _name, "", _read), do: {:ok, nil}
  defp value(:boolean, _name, text, _read), do: {:ok, text == "1"}

  defp value({:text, max}, name, text, _read) when is_binary(text) do
    if String.length(text) <= max,
      do: {:ok, text},
      else: {:error, "at most #{max} characters as #{name}"}
  end

  defp value({:text, _max}, name, _list, _read), do: {:error, "one #{name}"}

  defp value({:texts, max}, name, texts, _read) do
    texts = List.wrap(texts)

    if length(texts) <= max and Enum.all?(texts, &(is_binary(&1) and &1 != "")),
      do: {:ok, texts},
      else: {:error, "at most #{max} #{name}s, as #{name} or #{name}[]"}
  end

  defp value({:one_of, atoms}, name, text, _read) do
    with nil <- Enum.find(atoms, &(Atom.to_string(&1) == text)) do
      {last, first} = List.pop_at(atoms, -1)
      {:error, "#{Enum.join(first, ", ")} or #{last} as #{name}"}
    else
      atom -> {:ok, atom}
    end
  end

  defp value({:number, min, max}, name, text, _read) do
    case is_binary(text) && Number.integer(text) do
      {number, ""} when number in min..max//1 -> {:ok, number}
      _other -> {:error, "a number from #{min} to #{max} as #{name}"}
    end
  end

  defp value({:parsed, expected, fun}, name, text, read) do
    with true <- is_binary(text),
         {:ok, value} <- fun.(text, read),
         do: {:ok, value},
         else: (_ -> {:error, "#{expected} as #{name}"})
  end

  @doc "The JSON Schema of a field of the input, as the text of a query."
  @spec input_schema(type()) :: map()
  def input_schema({:text, max}), do: %{type: :string, maxLength: max}
  def input_schema({:one_of, atoms}), do: %{type: :string, enum: atoms}
  def input_schema({:number, min, max}), do: %{type: :integer, minimum: min, maximum: max}
  def input_schema({:parsed, _expected, _fun}), do: %{type: :string}
  def input_schema(:boolean), do: %{type: :string, enum: ["0", "1"]}

  def input_schema({:texts, max}),
    do: %{type: :array, maxItems: max, items: %{type: :string, minLength: 1}}

  @doc "The JSON Schema of a result, as `json/2` makes it."
  @spec output_schema(shape()) :: map()
  def output_schema([shape]) when is_list(shape), do: list(output_schema(shape))

  def output_schema(shape) do
    fields = for {type, fields} <- shape, field <- fields, do: property(type, field)
    %{type: :object, properties: Map.new(fields), required: Keyword.keys(fields)}
  end

  defp property(_type, {name, shape}) when is_list(hd(shape)), do: {name, output_schema(shape)}
  defp property(:object, {name, shape}), do: {name, output_schema(shape)}
  defp property(:object?, {name, shape}), do: {name, optional(output_schema(shape))}
  defp property(type, name), do: {name, plain_schema(type)}

  @plain %{
    text: %{type: :string},
    number: %{type: :number},
    boolean: %{type: :boolean},
    map: %{type: :object},
    time: %{type: :string, format: "date-time"}
  }
  @lists %{texts: :text, times: :time, objects: :map}
  @optional Map.new(Map.keys(@plain), &{:"#{&1}?", &1})

  defp plain_schema(type) when is_map_key(@plain, type), do: @plain[type]
  defp plain_schema(type) when is_map_key(@lists, type), do: list(@plain[@lists[type]])
  defp plain_schema(type), do: optional(@plain[@optional[type]])

  defp list(schema), do: %{type: :array, items: schema}
  defp optional(schema), do: %{schema | type: [schema.type, :null]}

  @doc "The result of an operation as maps for JSON: the fields of its shape, times as text."
  @spec json(shape(), term()) :: term()
  def json(_shape, nil), do: nil
  def json([shape], values) when is_list(shape), do: Enum.map(values, &json(shape, &1))

  def json(shape, value) do
    for {_type, fields} <- shape, field <- fields, into: %{} do
      case field do
        {name, shape} -> {name, json(shape, Map.fetch!(value, name))}
        name -> {name, plain(Map.fetch!(value, name))}
      end
    end
  end

  @doc "The result with the subject beside it."
  @spec outcome(t(), String.t(), term()) :: map()
  def outcome(%__MODULE__{output: {name, shape}} = operation, subject, result),
    do: %{operation.subject => subject, name => json(shape, result)}

  def outcome(%__MODULE__{output: shape, subject: name}, subject, result),
    do: shape |> json(result) |> Map.put(name, subject)

  defp plain(%DateTime{} = time), do: time |> DateTime.truncate(:second) |> DateTime.to_iso8601()
  defp plain([%DateTime{} | _] = times), do: Enum.map(times, &plain/1)
  defp plain(value), do: value

  @doc "The status of HTTP for an error of an operation."
  @spec status(t(), Exception.t()) :: 400..599
  def status(_operation, %UnknownSkillError{}), do: 404
  def status(_operation, %SQL.Error{}), do: 503
  def status(%__MODULE__{refused: status}, _error), do: status
end
