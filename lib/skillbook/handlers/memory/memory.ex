defmodule Skillbook.Handlers.Memory.Memory do
  @moduledoc """
  A memory, which the `memory.…` commands return as `:data` of a `Skillbook.Result`.

  It belongs to the profile that saved it. Other profiles cannot find it.

  ## Fields

    * `:id` - a number, shown as `M-3`
    * `:content` - text
    * `:category` - one word. Default: `"general"`
    * `:tags` - a list of strings
    * `:created_at` - UTC, whole seconds
  """

  alias Skillbook.Support.Number

  @type t :: %__MODULE__{
          id: pos_integer(),
          content: String.t(),
          category: String.t(),
          tags: [String.t()],
          created_at: DateTime.t()
        }

  defstruct [:id, :content, :category, :created_at, tags: []]

  @doc """
  Formats the id of a memory for a model.

      iex> memory = %Skillbook.Handlers.Memory.Memory{id: 3}
      iex> Skillbook.Handlers.Memory.Memory.reference(memory)
      "M-3"
  """
  @spec reference(t()) :: String.t()
  def reference(%__MODULE__{id: id}), do: "M-#{id}"

  @doc false
  # Reads an id from `M-12`, `m12` or `12`.
  @spec id(term()) :: {:ok, pos_integer()} | :error
  def id(text) when is_binary(text) do
    case Regex.run(~r/\A\s*(?:M-?)?0*([1-9][0-9]{0,17})\s*\z/i, text) do
      [_, digits] -> {:ok, Number.integer!(digits)}
      nil -> :error
    end
  end

  def id(id) when is_integer(id) and id > 0, do: {:ok, id}
  def id(_other), do: :error

  @doc """
  Formats the memory for a model: one line, with further lines of the content indented below it.

      iex> memory = %Skillbook.Handlers.Memory.Memory{
      ...>   id: 3,
      ...>   content: "Likes tea.\\nNo sugar.",
      ...>   category: "preference",
      ...>   tags: ["drinks"],
      ...>   created_at: ~U[2026-02-17 10:00:00Z]
      ...> }
      iex> Skillbook.Handlers.Memory.Memory.text(memory)
      "M-3 [preference, 2026-02-17, #drinks] Likes tea.\\n  No sugar."
  """
  @spec text(t()) :: String.t()
  def text(%__MODULE__{} = memory) do
    tags = Enum.map_join(memory.tags, " ", &("#" <> &1))
    facts = [memory.category, memory.created_at |> DateTime.to_date() |> Date.to_iso8601(), tags]
    content = String.replace(memory.content, ~r/\R/u, "\n  ")
    "#{reference(memory)} [#{facts |> Enum.reject(&(&1 == "")) |> Enum.join(", ")}] #{content}"
  end
end
