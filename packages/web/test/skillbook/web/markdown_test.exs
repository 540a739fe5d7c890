defmodule Skillbook.Web.MarkdownTest do
  # The rules of Markdown are tested in native/skillbook_core/tests/markdown.rs; here, that pages
  # stay whole with any text in them.
  use ExUnit.Case, async: true

  alias Skillbook.HostileTexts
  alias Skillbook.Test.HtmlChecker
  alias Skillbook.Web.{Html, Markdown}

  doctest Markdown

  # The machine may be busy.
  @moduletag timeout: 300_000

  @size 30_000

  defp html(text), do: text |> Markdown.html("/files/") |> Html.text()

  test "hostile texts become nothing but known tags" do
    for {name, text} <- HostileTexts.all() do
      assert {name, HtmlChecker.part(html(text.(div(@size, 4))))} == {name, []}
    end
  end

  test "random bytes, too" do
    for _ <- 1..300 do
      bytes = :crypto.strong_rand_bytes(Enum.random(0..200))
      assert {bytes, HtmlChecker.part(html(bytes))} == {bytes, []}
    end
  end

  test "the documents of other people, too" do
    with folder when folder != nil <- System.get_env("SKILLBOOK_CORPUS") do
      paths = Path.wildcard(folder <> "/**/*.md")
      assert length(paths) > 100

      # Every tenth, for the sake of time.
      for path <- Enum.take_every(paths, 10) do
        assert {path, HtmlChecker.part(html(File.read!(path)))} == {path, []}
      end
    end
  end

  test "a long text is shown in part" do
    long = html(String.duplicate("a ", 600_000))
    assert long =~ ~s(<p class="notice">The rest is too long to be shown.</p>)
    assert byte_size(long) < 1_100_000
  end

  # A quadratic text takes 16 times as long.
  test "four times a text takes about four times as long" do
    slow =
      for {name, text} <- HostileTexts.all(),
          {short, long} = {text.(@size), text.(4 * @size)},
          # Shorter times say more about the machine.
          time(long) > 2_000,
          ratio = ratio(short, long, 8),
          ratio > 8,
          do: {name, ratio}

    assert slow == []
  end

  # The machine may be busy, so the best of some attempts counts.
  defp ratio(short, long, attempts) do
    ratio = best(long) / max(best(short), 1)
    if ratio <= 8 or attempts == 1, do: ratio, else: min(ratio, ratio(short, long, attempts - 1))
  end

  defp best(text), do: Enum.min(for _ <- 1..5, do: time(text))
  defp time(text), do: fn -> Markdown.html(text) end |> :timer.tc() |> elem(0)
end
