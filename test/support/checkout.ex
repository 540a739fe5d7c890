defmodule Skillbook.Test.Checkout do
  @moduledoc false
  # The folder of the project and its packages, for tests that read its files. Tests of packages
  # run in their own folders.

  @root Path.expand("../..", __DIR__)

  @doc "The path of a file or folder of the project."
  def path(path \\ "."), do: Path.expand(path, @root)

  @doc "The text of a file of the project."
  def read!(path), do: path |> path() |> File.read!()

  @doc "The packages that are loaded, by the names of their applications."
  def applications do
    for {name, _, _} <- Application.loaded_applications(),
        name |> Atom.to_string() |> String.starts_with?("skillbook"),
        do: name
  end

  @doc "Their modules."
  def modules, do: Enum.flat_map(applications(), &Application.spec(&1, :modules))

  @doc "The files and folders that match a pattern or some, below the project's folder."
  def wildcard(patterns) do
    for pattern <- List.wrap(patterns),
        found <- Path.wildcard(path(pattern)),
        do: Path.relative_to(found, @root)
  end

  @doc "The files of all packages that match a pattern below their `lib`."
  def sources(pattern \\ "**/*.ex"),
    do: wildcard(["lib/#{pattern}", "packages/*/lib/#{pattern}"])
end
