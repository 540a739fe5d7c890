defmodule Skillbook.CLI.Help do
  @moduledoc false
  # The help of the commands: the text files in native/skillbook_cli/help, which the program
  # `skillbook` reads too, and of which it makes man pages and completions. `overview.txt` lists
  # all commands; a line `@NAME` stands for the text of `parts/NAME.txt`.

  alias Skillbook.CLI.Arguments

  # The library's folder: a package from Hex has no folders beside it.
  @folder Path.join(Mix.Project.deps_paths()[:skillbook], "native/skillbook_cli/help")
  @files Path.wildcard(Path.join(@folder, "**/*.txt"))

  for file <- @files, do: @external_resource(file)

  @texts Map.new(@files, fn file ->
           {file |> Path.relative_to(@folder) |> Path.rootname(), File.read!(file)}
         end)

  @doc "The help of a command's module; for `nil`, the overview."
  @spec text(module() | nil) :: String.t()
  def text(nil), do: "overview" |> read() |> String.trim_trailing()

  def text(module) do
    {name, _} = List.keyfind(Arguments.commands(), module, 1)
    read(name) <> "\n" <> String.trim_trailing(part("pointer"))
  end

  @doc "A text that several commands share, or that a command shows elsewhere too."
  @spec part(String.t()) :: String.t()
  def part(name), do: Map.fetch!(@texts, "parts/" <> name)

  @doc "The advice about a word that is no command, and that other programs have as one."
  @spec meant(String.t()) :: String.t() | nil
  def meant(word) do
    lines = "names" |> part() |> String.split("\n", trim: true)
    texts = Map.new(lines, &(&1 |> String.split(~r/ +/, parts: 2) |> List.to_tuple()))
    texts[word]
  end

  defp read(name) do
    text = Map.fetch!(@texts, name)
    Regex.replace(~r/^@(\w+)\n/m, text, fn _, part -> part(part) end)
  end
end
