defmodule Skillbook.Test.Browser do
  @moduledoc false
  # Chromium for tests: pages with cookies of their own, actions by label and role as a person
  # finds things, axe-core, screenshots. One browser serves all tests of a run.
  #
  #     page = Browser.open(server_url, theme: :dark, width: 360)
  #     Browser.goto(page, "/skills")
  #     Browser.click(page, role: "link", name: "email.send")
  #     Browser.assert_sound(page)
  #
  # Places are CSS selectors or keyword lists: `label:`, `text:`, `role:` with `name:`. A failed
  # action fails the test with Playwright's message.

  use GenServer

  import ExUnit.Assertions, only: [flunk: 1, assert: 2]

  alias Skillbook.Support.JSON

  @timeout 60_000

  @type page :: pos_integer()
  @type place :: String.t() | keyword()

  @doc """
  Opens a page of the server. Options: `:theme` (`:light` or `:dark`), `:width`, `:height`,
  `:script` (`false` turns JavaScript off). At the end of the test it is closed.
  """
  def open(url, options \\ []) do
    page =
      request(%{
        do: "open",
        url: url,
        theme: Keyword.get(options, :theme, :light),
        width: Keyword.get(options, :width, 1280),
        height: Keyword.get(options, :height, 800),
        script: Keyword.get(options, :script, true)
      })

    ExUnit.Callbacks.on_exit(fn -> request(%{do: "close", page: page}) end)
    page
  end

  @doc "Goes to a path; the response must have this status."
  def goto(page, path, status \\ 200) do
    got = on(page, "goto", path: path)
    assert got == status, "#{path} answered #{got}, expected #{status}"
    page
  end

  def click(page, place), do: then_page(page, "click", at: at(place))
  def fill(page, place, value), do: then_page(page, "fill", at: at(place), value: value)
  # Key by key, for scripts that react to each.
  def type(page, place, value), do: then_page(page, "type", at: at(place), value: value)
  def select(page, place, value), do: then_page(page, "select", at: at(place), value: value)
  def check(page, place, value \\ true), do: then_page(page, "check", at: at(place), value: value)
  def press(page, key), do: then_page(page, "press", key: key)
  def resize(page, width, height), do: then_page(page, "resize", width: width, height: height)
  def reload(page), do: then_page(page, "reload", [])

  @doc "Waits until the place is visible, or `:hidden`, `:attached` or `:detached`."
  def wait(page, place, state \\ :visible),
    do: then_page(page, "wait", at: at(place), state: state)

  @doc "Waits until the page has this URL; `*` and `**` are wildcards."
  def wait_url(page, path), do: then_page(page, "wait_url", path: path)

  @doc "Chooses a file in a field."
  def upload(page, place, name, type, data),
    do:
      then_page(page, "upload", at: at(place), name: name, type: type, data: Base.encode64(data))

  @doc "Clicks, and returns the name and the bytes of the file that is downloaded."
  def download(page, place) do
    %{"name" => name, "data" => data} = on(page, "download", at: at(place))
    {name, Base.decode64!(data)}
  end

  def text(page, place \\ "body"), do: on(page, "text", at: at(place))
  def count(page, place), do: on(page, "count", at: at(place))
  def value(page, place), do: on(page, "value", at: at(place))
  def html(page), do: on(page, "html")
  def url(page), do: on(page, "url")
  def title(page), do: on(page, "title")
  def cookies(page), do: on(page, "cookies")
  # The tag, id and text of the focused element.
  def focused(page), do: on(page, "focused")
  def evaluate(page, script), do: on(page, "evaluate", script: script)

  @doc """
  Errors and warnings of the console, exceptions of scripts, requests to other origins and dialogs
  since the last call.
  """
  def problems(page), do: on(page, "problems")

  @doc "Problems, findings of axe-core, and the pixels by which a page is wider than its window."
  def findings(page) do
    where = url(page)

    rules =
      for finding <- on(page, "axe"),
          do: "#{finding["id"]}: #{finding["help"]}\n  " <> Enum.join(finding["nodes"], "\n  ")

    wider = on(page, "overflow")
    wider = if wider > 0, do: ["#{wider} pixels wider than the window"], else: []
    for finding <- problems(page) ++ rules ++ wider, do: "#{where}: #{finding}"
  end

  @doc "The page has no findings."
  def assert_sound(page) do
    findings = findings(page)
    assert findings == [], Enum.join(findings, "\n")
    page
  end

  @images Path.expand("../../docs/images", __DIR__)

  @doc """
  Writes a picture of the window to docs/images if SKILLBOOK_SCREENSHOTS is set, else to a
  temporary folder. Returns its path.
  """
  def screenshot(page, name, options \\ []) do
    folder =
      if System.get_env("SKILLBOOK_SCREENSHOTS"),
        do: @images,
        else: Path.join(System.tmp_dir!(), "skillbook-screenshots")

    File.mkdir_p!(folder)
    file = Path.expand(Path.join(folder, name <> ".png"))
    on(page, "screenshot", file: file, whole: Keyword.get(options, :whole, false))
    file
  end

  @widths [{390, 780}, {820, 1100}, {1280, 800}]

  @doc """
  The page has no findings: in a wide window in light, and in a narrow one in dark; and is not
  wider than a window of 390, 820 and 1280 pixels.

  With SKILLBOOK_SHOTS, the name of a folder, all six are written there as pictures.
  """
  def assert_fits(page, name) do
    found =
      for {width, height} <- @widths,
          theme <- ["light", "dark"],
          resize(page, width, height),
          evaluate(page, "document.documentElement.dataset.theme = '#{theme}'"),
          finding <- fitting(page, width, theme, name),
          do: finding

    assert found == [], Enum.join(found, "\n")
    page
  end

  defp fitting(page, width, theme, name) do
    with folder when folder != nil <- System.get_env("SKILLBOOK_SHOTS") do
      File.mkdir_p!(folder)
      file = Path.join(Path.expand(folder), "#{name}-#{width}-#{theme}.png")
      on(page, "screenshot", file: file, whole: true)
    end

    at = "#{name}, #{width} pixels, #{theme}: "

    cond do
      {width, theme} in [{390, "dark"}, {1280, "light"}] ->
        Enum.map(findings(page), &(at <> &1))

      theme == "light" and on(page, "overflow") > 0 ->
        [at <> "wider than the window"]

      true ->
        []
    end
  end

  defp at(css) when is_binary(css), do: %{css: css}
  defp at(place), do: Map.new(place)

  defp then_page(page, action, arguments) do
    on(page, action, arguments)
    page
  end

  defp on(page, action, arguments \\ []),
    do: request(Map.merge(%{do: action, page: page}, Map.new(arguments)))

  defp request(request) do
    case GenServer.call(server(), {:request, request}, @timeout) do
      {:ok, value} -> value
      {:error, text} -> flunk("#{inspect(Map.delete(request, :data))}: #{text}")
    end
  end

  # The browser

  defp server do
    case GenServer.start(__MODULE__, [], name: __MODULE__) do
      {:ok, pid} -> pid
      {:error, {:already_started, pid}} -> pid
    end
  end

  @impl GenServer
  def init(_options) do
    command =
      System.get_env("SKILLBOOK_BROWSER") ||
        raise "SKILLBOOK_BROWSER is not set. To install a browser and set it: " <>
                "bin/browser-for-tests run mix test"

    [node | arguments] = String.split(command)
    options = [:binary, :exit_status, args: arguments, line: 1_000_000]
    port = Port.open({:spawn_executable, node}, options)
    {:ok, %{port: port, next: 1, waiting: %{}, line: []}}
  end

  @impl GenServer
  def handle_call({:request, request}, from, state) do
    Port.command(state.port, [JSON.encode(Map.put(request, :id, state.next)), "\n"])
    {:noreply, %{state | next: state.next + 1, waiting: Map.put(state.waiting, state.next, from)}}
  end

  @impl GenServer
  def handle_info({port, {:data, {:noeol, part}}}, %{port: port} = state),
    do: {:noreply, %{state | line: [state.line, part]}}

  def handle_info({port, {:data, {:eol, part}}}, %{port: port} = state) do
    {:ok, answer} = JSON.decode(IO.iodata_to_binary([state.line, part]))
    {from, waiting} = Map.pop(state.waiting, answer["id"])

    case {from, answer} do
      {nil, _} -> :ok
      {from, %{"error" => text}} -> GenServer.reply(from, {:error, text})
      {from, answer} -> GenServer.reply(from, {:ok, answer["ok"]})
    end

    {:noreply, %{state | waiting: waiting, line: []}}
  end

  def handle_info({port, {:exit_status, status}}, %{port: port} = state),
    do: {:stop, {:browser_ended, status}, state}
end
