defmodule Skillbook.Handlers.Skills.Edited do
  @moduledoc false
  # The flags of commands that change a text, and the `Skillbook.Store.Edit` that they mean.

  alias Skillbook.{FlagError, Flags}
  alias Skillbook.Handlers.Skills.Written
  alias Skillbook.Store.Edit

  @edits %{"replace" => :replace, "append" => :append, "prepend" => :prepend, "delete" => :delete}
  @replacing ~w(find replace replace-all)

  @doc "Their names, beside `operation` and `content`."
  @spec flags() :: [String.t()]
  def flags, do: @replacing

  @doc "Reads them; `operations` are those that the command has."
  @spec cast(Flags.t(), [String.t()]) :: Flags.cast()
  def cast(flags, operations) do
    with {:ok, flags} <- Flags.cast_one_of(flags, "operation", operations),
         {:ok, flags} <- Flags.cast_boolean(flags, "replace-all"),
         {:ok, flags} <- Written.cast_content(flags, "content"),
         {:ok, flags} <- Written.cast_content(flags, "find"),
         do: Written.cast_content(flags, "replace")
  end

  @doc "The edit that they mean once they are read; nil without any of them."
  @spec edit(Flags.t()) :: {:ok, Edit.t() | nil} | {:error, FlagError.t()}
  def edit(%{"operation" => "find_replace"} = flags) do
    with :ok <- Flags.require(flags, ["find", "replace"]),
         :ok <- without(flags, ["content"], "--content is for the other operations") do
      {:ok, {:find_replace, flags["find"], flags["replace"], all?: Map.get(flags, "replace-all", false)}}
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
      do: {:error, %FlagError{kind: :missing, flag: "operation", flags: ["operation"], example: "replace"}},
      else: {:ok, nil}
  end

  defp without(flags, names, text) do
    case Enum.filter(names, &Map.has_key?(flags, &1)) do
      [] -> :ok
      given -> Written.conflict(["operation" | given], text)
    end
  end
end
