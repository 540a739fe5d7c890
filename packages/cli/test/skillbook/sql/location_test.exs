defmodule Skillbook.SQL.LocationTest do
  # Alone, because it changes the current folder.
  use ExUnit.Case, async: false

  import ExUnit.CaptureIO

  alias Skillbook.{CLI, OptionError}
  alias Skillbook.SQL.{Location, Postgres, SQLite}

  doctest Skillbook.SQL.Location

  @moduletag :tmp_dir

  @understood [
    {"skills.db", "skills.db"},
    {"var/skills.db", "var/skills.db"},
    {"/var/skills.db", "/var/skills.db"},
    {":memory:", ":memory:"},
    {"a:b", "a:b"},
    {"postgres:/x", "postgres:/x"},
    {"sqlite:///var/skills.db", "/var/skills.db"},
    {"SQLITE:///var/skills.db", "/var/skills.db"},
    {"file:///var/skills.db", "/var/skills.db"},
    {"sqlite:///var/my%20skills.db", "/var/my skills.db"}
  ]

  @refused [
    "mysql://ann:s3cret@host/db",
    "https://ann:s3cret@host/db",
    "postgress://ann:s3cret@host/db",
    " postgres://ann:s3cret@host/db",
    "ann:s3cret@postgres://host/db",
    "sqlite://ann:s3cret@host/db",
    "sqlite://skills.db",
    "sqlite://:memory:",
    "sqlite://",
    "sqlite:///",
    "sqlite:///folder/",
    "sqlite:///a.db?mode=ro",
    "sqlite:///a%00.db",
    "file:///postgres://ann:s3cret@host/db",
    "://ann:s3cret@host/db",
    "mysql://ann:s3c\"ret@ho st/db",
    "x/mysql://ann:s3cret@host/db"
  ]

  @expected "a path, \":memory:\", postgres://user:password@host/database or " <>
              "sqlite:///folder/file.db"

  test "a path is a file, and a URL is understood or refused" do
    for {text, path} <- @understood,
        do: assert({text, Location.read(text)} == {text, {:ok, {SQLite, path: path}}})

    for url <- ["postgres://ann:s3cret@host/db", "postgresql://ann@host", "PostgreSQL:///db"] do
      assert {:ok, {Postgres, url: read}} = Location.read(url)
      [_, rest] = String.split(url, "://")
      assert read.() == "postgres://" <> rest
    end

    for url <- @refused, do: assert({url, Location.read(url)} == {url, {:error, @expected}})
  end

  test "no refused URL reaches an error, a report or the name of a file", %{tmp_dir: folder} do
    File.cd!(folder, fn ->
      for url <- @refused, option <- [url, fn -> url end] do
        assert {:error, %OptionError{option: :store} = error} =
                 Skillbook.start_link(name: :refused, store: option)

        [scheme] = Regex.run(~r/[a-z]*(?=:\/\/)/, url)

        assert Exception.message(error) ==
                 "expected #{@expected} as the option :store of a book, got: \"#{scheme}://…\""

        refute inspect(error, limit: :infinity) =~ "cret"

        child = Skillbook.child_spec(name: :refused, store: option)
        refute inspect(child, limit: :infinity) =~ "cret"
      end

      for url <- @refused do
        message = fn error -> error |> elem(1) |> Exception.message() end
        vault = Skillbook.start_link(name: :x, store: ":memory:", vaults: [[path: url]])
        assert message.(vault) =~ "expected a folder as the option :path of a vault, got: "
        refute message.(vault) =~ "host"

        assert {:error, %OptionError{option: :path}} =
                 Skillbook.start_link(name: :x, store: ":memory:", vaults: [url])

        write_to = Skillbook.start_link(name: :x, write_to: url)
        assert message.(write_to) =~ "expected a folder or nil as the option :write_to of a book"
        refute message.(write_to) =~ "host"

        error = assert_raise ArgumentError, fn -> SQLite.start_link(name: :x, path: url) end
        assert error.message == "expected :path to be a file or \":memory:\", got a URL"
      end

      assert File.ls!(".") == []
    end)
  end

  test "the command line refuses such a --db", %{tmp_dir: folder} do
    File.cd!(folder, fn ->
      text =
        capture_io(:stderr, fn ->
          assert CLI.run(["--db", "mysql://ann:s3cret@host/db", "list"]) == 3
        end)

      assert text == "skillbook: cannot start: expected #{@expected} as --db, got: mysql://…\n"
      assert File.ls!(".") == []
    end)
  end
end
