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

  @type t :: %__MODULE__{
          id: pos_integer(),
          content: String.t(),
          category: String.t(),
          tags: [String.t()],
          created_at: DateTime.t()
        }

  defstruct [:id, :content, :category, :created_at, tags: []]

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
    "M-#{memory.id} [#{facts |> Enum.reject(&(&1 == "")) |> Enum.join(", ")}] #{content}"
  end
end
