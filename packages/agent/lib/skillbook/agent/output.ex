defmodule Skillbook.Agent.Output do
  @moduledoc false
  # The answer of a run with the option `:output`: an object of a JSON schema, or of the flags
  # that a module of `Skillbook.Skill` declares, in whose types it arrives.

  alias Skillbook.Flags.Check
  alias Skillbook.Model.{JSONSchema, Object}
  alias Skillbook.Support.JSON
  alias Skillbook.{Catalog, Declaration, OptionError, Tools, View}

  @enforce_keys [:schema, :check]
  defstruct [:schema, :check]

  @type t :: %__MODULE__{
          schema: map(),
          check: (map() -> {:ok, map()} | {:error, Exception.t()})
        }

  @doc "Reads the option; `nil` without one."
  @spec read(map() | module() | nil) :: {:ok, t() | nil} | {:error, OptionError.t()}
  def read(nil), do: {:ok, nil}

  def read(schema) when is_map(schema) do
    JSONSchema.check!(schema)
    check = &with(:ok <- JSONSchema.check(schema, &1), do: {:ok, &1})
    {:ok, %__MODULE__{schema: JSONSchema.closed(schema), check: check}}
  rescue
    error in ArgumentError ->
      "expected " <> text = Exception.message(error)
      [expected | _got] = String.split(text, ", got: ")
      invalid(expected, schema)
  end

  def read(module) when is_atom(module) do
    if Code.ensure_loaded?(module) and function_exported?(module, :__skillbook_skill__, 0),
      do: of_module(module),
      else: invalid("a JSON schema or a module that uses Skillbook.Skill", module)
  end

  def read(other), do: invalid("a JSON schema or a module that uses Skillbook.Skill", other)

  defp of_module(module) do
    {:ok, catalog} = Catalog.load([{:modules, [module]}])
    view = View.all(catalog)
    [entry] = View.entries(view)

    tool = view |> Tools.list() |> Enum.find(&(&1.entry == entry.name))

    case {Declaration.of(entry), tool} do
      {%Declaration{error: nil, flags: [_ | _]} = declaration, %{schema: schema}} ->
        {:ok, %__MODULE__{schema: schema, check: &cast(&1, declaration)}}

      _none ->
        invalid("a module of Skillbook.Skill with :flags", module)
    end
  end

  # Words such as "tomorrow" mean the day of the answer.
  defp cast(object, declaration),
    do: Check.declared(object, declaration, json: true, today: Date.utc_today())

  defp invalid(expected, got) do
    problem = {:invalid, expected, got}
    {:error, %OptionError{subject: "a run", option: :output, problem: problem}}
  end

  @doc "What the model reads about its answer."
  @spec instruction(t()) :: String.t()
  def instruction(output) do
    "Your answer, the reply without commands, must be one JSON object and nothing else. It " <>
      "must match this JSON schema: #{JSON.encode(output.schema)}"
  end

  @doc "The object in an answer, in the types of the output."
  @spec parse(t(), String.t()) :: {:ok, map()} | {:error, Exception.t()}
  def parse(output, text),
    do: Object.find(text, &if(is_map(&1), do: output.check.(&1)))

  @doc "What the model reads about an answer that cannot be used."
  @spec repair(Exception.t()) :: String.t()
  def repair(error) do
    "Your answer cannot be used: #{Exception.message(error)}. Answer again, with one JSON " <>
      "object that matches the schema and nothing else."
  end
end
