defmodule Skillbook.Vault.ProducerTest do
  # The producer of docs/vaults.md, verbatim, with a process as the drive.
  use ExUnit.Case, async: true
  use Skillbook.SkillsCase

  import ExUnit.CaptureLog

  alias Skillbook.{Profile, TestDrive, Vault, View}

  # The indexer retries after five seconds, and machines may be busy.
  @timeout 30_000

  setup_all do
    [_, code] =
      Regex.run(
        ~r/```elixir\n(defmodule MyApp\.Drive do\n.*?)```/s,
        Skillbook.Test.Checkout.read!("docs/vaults.md")
      )

    code = code |> String.replace("MyApp.DriveAPI", "#{inspect(TestDrive)}, as: DriveAPI")

    [{producer, _}] =
      code
      |> String.replace("MyApp.Drive", "#{inspect(__MODULE__)}.Drive")
      |> Code.compile_string()

    {:ok, producer: producer}
  end

  setup %{producer: producer} do
    {:ok, drive} = TestDrive.start_link()

    for {id, path, text, labels} <- [
          {"1a", "Plans/Q1.md", "The quarterly plan", []},
          {"2b", "Plans/Q2.md", "Another plan", ["board"]},
          {"3c", "Trip.md", "---\ntags: [home]\n---\nA plan of the trip", []},
          {"4d", "List.md", "Bread and butter", []},
          {"5e", "Last.md", "The last plan", []}
        ],
        do: :ok = TestDrive.put(drive, id, path: path, text: text, labels: labels)

    book = book(store: ":memory:", vaults: [[name: "drive", producer: {producer, drive: drive}]])
    :ok = Vault.subscribe(book)
    {:ok, _} = Vault.sync(book, "drive")
    {:ok, drive: drive, book: book}
  end

  test "all pages are indexed, and unchanged ones are not read again", %{
    drive: drive,
    book: book
  } do
    assert found(book, "plan") == ["Last.md", "Plans/Q1.md", "Plans/Q2.md", "Trip.md"]
    downloads = TestDrive.downloads(drive)
    assert Vault.sync(book, "drive") == {:ok, counts(unchanged: 5)}
    assert TestDrive.downloads(drive) == downloads
    {:ok, %{hits: [hit]}} = Vault.search(View.all(book), "trip", tags: ["home"])
    assert {hit.id, hit.vault, hit.path} == {"3c", "drive", "Trip.md"}
  end

  test "follows changes of texts, names and labels, and new and deleted pages", %{
    drive: drive,
    book: book
  } do
    :ok = TestDrive.put(drive, "4d", text: "Bread and jam")
    assert await(book, counts(indexed: 1)) == :ok
    assert {found(book, "jam"), found(book, "butter")} == {["List.md"], []}

    :ok = TestDrive.put(drive, "4d", path: "Lists/Food.md")
    assert await(book, counts(indexed: 1)) == :ok

    assert {found(book, "jam"), found(book, "food"), found(book, "list")} ==
             {["Lists/Food.md"], ["Lists/Food.md"], []}

    :ok = TestDrive.put(drive, "6f", path: "New.md", text: "jam")
    assert await(book, counts(indexed: 1)) == :ok
    :ok = TestDrive.delete(drive, "4d")
    assert await(book, counts(removed: 1)) == :ok
    assert found(book, "jam") == ["New.md"]

    reader = Skillbook.view(book, %Profile{id: "p", grants: []})
    assert {:ok, %{total: 3}} = Vault.search(reader, "plan")
    :ok = TestDrive.put(drive, "1a", labels: ["board"])
    assert await(book, counts(indexed: 1)) == :ok
    assert {:ok, %{total: 2, hits: hits}} = Vault.search(reader, "plan")
    assert Enum.map(hits, & &1.path) == ["Last.md", "Trip.md"]
    assert {:ok, %{total: 0}} = Vault.search(reader, "quarterly")
  end

  test "an error during a list removes nothing, and the list is retried", %{
    drive: drive,
    book: book
  } do
    log =
      capture_log(fn ->
        for answer <- [{:error, :timeout}, {:raise, "no route"}, {:exit, :closed}] do
          :ok = TestDrive.fail(drive, {:files, 2}, answer)
          assert {:error, _} = Vault.sync(book, "drive")
          assert length(found(book, "plan")) == 4
        end

        :ok = TestDrive.put(drive, "1a", text: "The yearly plan")
        assert await(book, counts(indexed: 1)) == :ok
        :ok = TestDrive.fail(drive, {:files, 2}, nil)
        # Not called.
        assert await(book, counts(unchanged: 5)) == :ok
      end)

    assert log =~
             "the vault drive is indexed again later, because it could not be indexed: timeout"

    assert found(book, "yearly") == ["Plans/Q1.md"]
  end

  test "the interval grows up to a minute while an error lasts", %{drive: drive, book: book} do
    [{indexer, _}] = Registry.lookup(Skillbook.Vault.Indexer.registry(book), "drive")
    left = fn -> Process.read_timer(:sys.get_state(indexer).retry) end
    :ok = TestDrive.fail(drive, {:files, 2}, {:error, :timeout})

    capture_log(fn ->
      {:error, _} = Vault.sync(book, "drive")
      assert left.() in 1..5_000

      for most <- [10_000, 20_000, 40_000, 60_000, 60_000] do
        send(indexer, :retry)
        assert left.() in (div(most, 2) + 1)..most
      end

      # A success begins anew.
      :ok = TestDrive.fail(drive, {:files, 2}, nil)
      send(indexer, :retry)
      assert :sys.get_state(indexer).retry == nil
      :ok = TestDrive.fail(drive, {:files, 2}, {:error, :timeout})
      {:error, _} = Vault.sync(book, "drive")
      assert left.() in 1..5_000
    end)
  end

  test "an unreadable document keeps its index and is retried",
       context do
    %{drive: drive, book: book} = context

    log =
      capture_log(fn ->
        :ok = TestDrive.fail(drive, {:download, "1a"}, {:error, "503 Service Unavailable"})
        :ok = TestDrive.fail(drive, {:download, "3c"}, {:raise, "broken"})
        for id <- ["1a", "3c", "5e"], do: :ok = TestDrive.put(drive, id, text: "A new text")
        assert await(book, counts(indexed: 1)) == :ok
        assert {found(book, "text"), found(book, "quarterly")} == {["Last.md"], ["Plans/Q1.md"]}
        {:ok, counts} = Vault.sync(book, "drive")
        assert counts == counts(failed: 2, unchanged: 3)
        for id <- ["1a", "3c"], do: :ok = TestDrive.fail(drive, {:download, id}, nil)
        assert await(book, counts(indexed: 2, unchanged: 3)) == :ok
      end)

    assert log =~ "the vault drive: 1a could not be read: 503 Service Unavailable"
    assert log =~ "the vault drive: 3c could not be read: broken"

    assert log =~
             "the vault drive is indexed again later, because 1 of its documents could not " <>
               "be read"

    assert found(book, "text") == ["Last.md", "Plans/Q1.md", "Trip.md"]
  end

  @tag :capture_log
  test "a document that must no longer be indexed is removed", %{drive: drive, book: book} do
    :ok = TestDrive.fail(drive, {:download, "1a"}, {:error, :not_found})
    :ok = TestDrive.put(drive, "1a", text: "Changed, and gone before it is read")
    assert await(book, counts(removed: 1)) == :ok
    assert found(book, "quarterly") == []
    :ok = TestDrive.put(drive, "5e", text: "---\nvisibility_labels: {a: b}\n---\nThe last plan")
    assert await(book, counts(skipped: 1, removed: 1)) == :ok
    assert found(book, "last") == []
  end

  test "progress is reported during a large update", %{producer: producer} do
    {:ok, drive} = TestDrive.start_link()

    for number <- 1..1_100,
        do:
          :ok = TestDrive.put(drive, "n#{number}", path: "n#{number}.md", text: "note #{number}")

    # The first page fails, so that this process can subscribe before the retry.
    :ok = TestDrive.fail(drive, {:files, 0}, {:error, :later})

    capture_log(fn ->
      book =
        book(store: ":memory:", vaults: [[name: "drive", producer: {producer, drive: drive}]])

      {:error, :later} = Vault.sync(book, "drive")
      :ok = Vault.subscribe(book)
      :ok = TestDrive.fail(drive, {:files, 0}, nil)
      assert {:ok, %{indexed: 1_100}} = Vault.sync(book, "drive")

      for done <- [1_000, 1_100] do
        assert_receive {:skillbook_vault_progress, ^book, "drive", %{done: ^done, total: 1_100}}
      end

      assert length(found(book, "note 1099")) == 1
    end)
  end

  defp counts(some),
    do: Map.merge(%{indexed: 0, removed: 0, unchanged: 0, skipped: 0, failed: 0}, Map.new(some))

  # Waits for a progress message with that count.
  defp await(book, counts) do
    receive do
      {:skillbook_vault, ^book, "drive", ^counts} -> :ok
    after
      @timeout -> {:timeout, Process.info(self(), :messages)}
    end
  end

  defp found(book, query) do
    {:ok, %{hits: hits}} = Vault.search(View.all(book), query, limit: 100)
    hits |> Enum.map(& &1.path) |> Enum.sort()
  end
end
