defmodule Skillbook.Result do
  @moduledoc """
  What running one command gave.

  A handler fills `:content`, `:data`, `:effects` and `:metadata`; the rest is filled in by the run.

  ## Fields

    * `:status` - `:ok`; `:error`; `:template`, the content is instructions for the model to follow; `:help`; or
      `:skipped`, it did not run because one before it failed
    * `:content` - the text for the model
    * `:data` - the same as values, for Elixir callers and tests; any term
    * `:name` - the name of the skill that was called, or `nil` if none was
    * `:command` - the command as the model wrote it, or `nil`
    * `:error` - the exception behind an `:error`, else `nil`
    * `:duration` - how long it took until there was an answer, in microseconds
    * `:effects` - what changed in the world, a list of atoms such as `:task_created`
    * `:metadata` - whatever else the handler wants to hand on, a map. Where the content holds entries' own texts as a
      whole (`:help`, `:template`), `:activates` has a map for each: its `:name`, and as `:hash` 16 hexadecimal digits of its
      text's SHA-256. `:parts` has the same of those of which the content holds a part, or a file. Where it was cut, `:cut` says what is shown, as [running commands](docs/running.md) has it
  """

  @type t :: %__MODULE__{
          status: :ok | :error | :template | :help | :skipped,
          content: String.t(),
          data: term(),
          name: String.t() | nil,
          command: String.t() | nil,
          error: Exception.t() | nil,
          duration: non_neg_integer() | nil,
          effects: [atom()],
          metadata: map()
        }

  @enforce_keys [:status, :content]
  defstruct [
    :status,
    :content,
    :data,
    :name,
    :command,
    :error,
    :duration,
    effects: [],
    metadata: %{}
  ]

  @doc """
  A result that went well.

  ## Options

    * `:data`, `:effects`, `:metadata` - the fields of these names

  ## Examples

      iex> Skillbook.Result.ok("Saved as M-1.", data: 1, effects: [:memory_saved])
      %Skillbook.Result{status: :ok, content: "Saved as M-1.", data: 1, effects: [:memory_saved]}
  """
  @spec ok(String.t(), keyword()) :: t()
  def ok(content, opts \\ []) when is_binary(content) do
    struct!(%__MODULE__{status: :ok, content: content}, opts)
  end

  @doc """
  A result that failed; the error's message is its content.

  ## Examples

      iex> result = Skillbook.Result.error(%ArgumentError{message: "no such task"})
      iex> {result.status, result.content}
      {:error, "no such task"}
  """
  @spec error(Exception.t()) :: t()
  def error(exception) when is_exception(exception) do
    %__MODULE__{status: :error, content: Exception.message(exception), error: exception}
  end
end
