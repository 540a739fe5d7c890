defmodule Skillbook.Connections.LibraryTest do
  use ExUnit.Case, async: true

  alias Skillbook.Connections.Library

  test "the library is loaded once, by any number of callers" do
    results =
      1..50 |> Enum.map(fn _ -> Task.async(&Library.load/0) end) |> Task.await_many(:infinity)

    assert Enum.uniq(results) == [:ok]
    assert Library.loaded?()
    assert Library.decode("gr\xfc\xdfe", "iso-8859-1") == "grüße"
  end

  @build "set `config :skillbook, connections: true` in config/config.exs, or " <>
           "SKILLBOOK_CONNECT=1 in the environment, and run mix deps.compile " <>
           "skillbook_accounts --force; in the package's own folder: SKILLBOOK_CONNECT=1 mix " <>
           "compile"

  @tag :tmp_dir
  test "without its library the error says how to build it", %{tmp_dir: folder} do
    File.mkdir_p!(Path.join(folder, "skillbook_accounts/priv/native"))
    ebin = Path.join(folder, "skillbook_accounts/ebin")
    File.ln_s!(Application.app_dir(:skillbook_accounts, "ebin"), ebin)
    core = Application.app_dir(:skillbook, "ebin")
    code = "{:error, e} = Skillbook.Connections.Library.load(); IO.write(e)"

    message = fn ->
      {message, 0} = System.cmd("elixir", ["-pa", core, "-pa", ebin, "-e", code])
      message
    end

    assert message.() == "the library of connections is not built: " <> @build
    library = Path.join(folder, "skillbook_accounts/priv/native/libskillbook_connect.so")
    File.write!(library, "no library")

    assert message.() =~
             ~r/\Athe library of connections is not built: the library cannot be loaded \(.+\);/
  end
end
