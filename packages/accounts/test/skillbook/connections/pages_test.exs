defmodule Skillbook.Connections.PagesTest do
  # `Skillbook.Connections.list/2` page by page.
  use Skillbook.SkillsCase, async: true

  alias Skillbook.{Book, ConnectionError, Connections, OptionError}

  @now ~U[2026-03-01 08:00:00Z]

  # Accounts of people, one with a secret, and names that begin alike.
  defp book do
    client = [client_id: "id", client_secret: fn -> "secret" end]

    accounts = [
      google: client,
      hubspot: [token: fn -> "token" end],
      "google two": [vendor: :google] ++ client
    ]

    name = :"pages_#{System.unique_integer([:positive])}"
    options = [name: name, watch: false, builtins: false, store: ":memory:"]
    key = [key: fn -> Base.encode64(String.duplicate("k", 32)) end]
    start_supervised!({Skillbook, options ++ [connections: key ++ accounts]}, id: name)
    name
  end

  defp put(book, account, profile, tenant \\ nil) do
    row = %{
      status: :connected,
      tenant: tenant,
      identity: nil,
      scopes: [],
      key_id: "k",
      secret: "s",
      expires_at: 1
    }

    sql = Book.sql(Book.fetch!(book))
    {:ok, _} = Connections.Table.put(sql, {profile, account}, @now, fn _ -> {:ok, row} end)
  end

  defp names(connections), do: Enum.map(connections, &"#{&1.account} #{&1.profile}")

  # The pages of so many, each after the last connection of the one before, or after its text.
  defp pages(book, limit, options, place, last \\ nil) do
    {:ok, page} = Connections.list(book, options ++ [limit: limit, after: last && place.(last)])

    if page == [],
      do: [],
      else: [names(page) | pages(book, limit, options, place, List.last(page))]
  end

  setup do
    book = book()
    for name <- ~w(ann bob cid), do: put(book, "google", name, if(name == "cid", do: "acme"))
    for name <- ~w(ann two), do: put(book, "google two", name)
    %{book: book}
  end

  test "pages of any size have all of the list, in its order", %{book: book} do
    text = &String.trim("#{&1.account} #{&1.profile}")

    for {options, expected} <- [
          {[],
           ["google ann", "google bob", "google cid", "hubspot "] ++
             ["google two ann", "google two two"]},
          {[profile: "ann"], ["google ann", "hubspot ann", "google two ann"]},
          {[tenant: nil],
           ["google ann", "google bob", "hubspot "] ++
             ["google two ann", "google two two"]},
          {[profile: "cid", tenant: "acme"], ["google cid", "hubspot cid"]}
        ],
        limit <- [1, 2, 4, 10],
        place <- [& &1, text] do
      assert {:ok, all} = Connections.list(book, options)
      assert names(all) == expected
      assert book |> pages(limit, options, place) |> Enum.concat() == expected
    end
  end

  test "a cursor stays right while others write", %{book: book} do
    assert {:ok, [_ann, bob]} = Connections.list(book, limit: 2)
    {:ok, true} = Connections.Table.delete(Book.sql(Book.fetch!(book)), {"bob", "google"})
    for name <- ~w(abe bert), do: put(book, "google", name)
    assert {:ok, page} = Connections.list(book, limit: 3, after: bob)
    assert names(page) == ["google cid", "hubspot ", "google two ann"]
  end

  test "wrong options are errors", %{book: book} do
    for {options, message} <- [
          {[limit: 0], "expected a number from 1 or nil"},
          {[after: 1], "expected a connection, its account and profile as text, or nil"}
        ] do
      assert {:error, %OptionError{} = error} = Connections.list(book, options)
      assert Exception.message(error) =~ message
    end

    assert {:error, %ConnectionError{kind: :account}} = Connections.list(book, after: "nowhere a")
  end
end
