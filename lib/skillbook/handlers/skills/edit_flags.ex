defmodule Skillbook.Handlers.Skills.EditFlags do
  @moduledoc false
  # Turns the flags of commands that edit a text into a `Skillbook.Store.Edit`.

  alias Skillbook.Store.Edit
  alias Skillbook.{FlagError, Flags}

  @edits %{"replace" => :replace, "append" => :append, "prepend" => :prepend, "delete" => :delete}
  @replacing ~w(find replace replace-all)

  @doc "Returns the edit, or nil if no flag asks for one."
  @spec edit(Flags.t()) :: {:ok, Edit.t() | nil} | {:error, FlagError.t()}
  def edit(%{"operation" => "find_replace"} = flags) do
    with :ok <- Flags.require(flags, ["find", "replace"]),
         :ok <- without(flags, ["content"], "--content is for the other operations") do
      {:ok,
       {:find_replace, flags["find"], flags["replace"],
        all?: Map.get(flags, "replace-all", false)}}
    end
  end

  def edit(%{"operation" => operation} = flags) do
    with :ok <- Flags.require(flags, ["content"]),
         :ok <- without(flags, @replacing, "it is for the operation find_replace") do
      {:ok, {Map.fetch!(@edits, operation), flags["content"]}}
    end
  end

  def edit(flags) do
    if Enum.any?(["content" | @replacing], &Map.has_key?(flags, &1)),
      do:
        {:error,
         %FlagError{
           kind: :missing,
           flag: "operation",
           flags: ["operation"],
           example: "replace"
         }},
      else: {:ok, nil}
  end

  defp without(flags, names, text) do
    case Enum.filter(names, &Map.has_key?(flags, &1)) do
      [] -> :ok
      present -> FlagError.conflict(["operation" | present], text)
    end
  end
end
