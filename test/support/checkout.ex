defmodule Skillbook.Test.Checkout do
  @moduledoc false
  # The folder of the project, for tests that read its files. Tests of packages run in their own
  # folders.

  @root Path.expand("../..", __DIR__)

  @doc "The path of a file or folder of the project."
  def path(path \\ "."), do: Path.expand(path, @root)

  @doc "The text of a file of the project."
  def read!(path), do: path |> path() |> File.read!()

  @doc "The files and folders that match, below the project's folder."
  def wildcard(pattern),
    do: for(path <- Path.wildcard(path(pattern)), do: Path.relative_to(path, @root))

  @doc "The Elixir files of all packages, below the project's folder."
  def sources, do: wildcard("{lib,packages/*/lib}/**/*.ex")
end
