defmodule Skillbook.SetupError do
  @moduledoc """
  A command needs something that its book was started without.

  The model cannot mend this; the message is for whoever runs the book.

  ## Fields

    * `:command` - the name of the command
    * `:option` - the option to set: `:store` or `:write_to`

  ## Examples

      iex> Exception.message(%Skillbook.SetupError{command: "tasks.get", option: :store})
      ~s(`tasks.get` needs a database and this book has none. Whoever runs it sets the option `store:`, for example store: "skillbook.db")
  """

  @type t :: %__MODULE__{command: String.t(), option: :store | :write_to}

  @enforce_keys [:command, :option]
  defexception [:command, :option]

  @impl true
  def message(%{command: command, option: option}) do
    {need, example} = describe(option)

    "`#{command}` needs #{need} and this book has none. " <>
      "Whoever runs it sets the option `#{option}:`, for example #{option}: #{inspect(example)}"
  end

  defp describe(:store), do: {"a database", "skillbook.db"}
  defp describe(:write_to), do: {"a folder to write skills into", "skills"}
end
