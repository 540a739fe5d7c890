defmodule Skillbook.HTTP.AddressesTest do
  # Names of this test lead to addresses in the tables of the virtual machine.
  use Skillbook.SkillsCase, async: false

  import Skillbook.Test.Packages

  alias Skillbook.HTTP.Addresses
  alias Skillbook.{HTTP, Package}

  doctest Addresses

  @moduletag :tmp_dir

  @hosts [
    {{93, 184, 216, 34}, ["site.test-a.example", "both.test-a.example"]},
    {{10, 0, 0, 1}, ["wiki.test-a.example", "both.test-a.example"]},
    {{0xFD00, 0, 0, 0, 0, 0, 0, 1}, ["six.test-a.example"]},
    {{127, 0, 0, 1}, ["here.test-a.example"]},
    {{169, 254, 169, 254}, ["cloud.test-a.example"]},
    {{93, 184, 216, 35}, ["cdn.test-a.example"]}
  ]
  @inside ~w(wiki both six here cloud)
  @reason "its address is in a private network"

  setup do
    before = :inet_db.res_option(:lookup)
    for {address, names} <- @hosts, do: :inet_db.add_host(address, Enum.map(names, &~c"#{&1}"))
    :inet_db.set_lookup([:file | before -- [:file]])

    on_exit(fn ->
      :inet_db.set_lookup(before)
      for {address, _names} <- @hosts, do: :inet_db.del_host(address)
    end)
  end

  defp name(host), do: host <> ".test-a.example"

  test "a name is public if all its addresses are" do
    for host <- @inside, do: assert({host, check(name(host))} == {host, {:error, @reason}})

    for host <- ["10.0.0.1", "[::1]", "localhost", "LOCALHOST.", "printer.local", "127.1"],
        do: assert({host, check(host)} == {host, {:error, @reason}})

    for host <- ["site", "cdn", "missing"], do: assert({host, check(name(host))} == {host, :ok})
    for host <- ["8.8.8.8", "[2606:4700::1111]"], do: assert({host, check(host)} == {host, :ok})
  end

  defp check(host), do: Addresses.check_public(host, 5_000)

  test "a request and its redirects keep to the addresses of their option" do
    [site, wiki, cdn] = for host <- ["site", "wiki", "cdn"], do: "https://#{name(host)}/"
    moved = fn to -> {302, [{"location", to}], ""} end
    refused = "#{name("wiki")}:443: #{@reason}"

    # {option, first address, its answer, result}
    rows = [
      {:any, wiki, "ok", "ok"},
      {:any, site, moved.(wiki), "ok"},
      {:public, site, "ok", "ok"},
      {:public, wiki, "ok", refused},
      {:public, site, moved.(cdn), "ok"},
      {:public, site, moved.(wiki), refused},
      {:public_redirects, wiki, "ok", "ok"},
      {:public_redirects, site, moved.(cdn), "ok"},
      {:public_redirects, site, moved.(wiki), refused},
      # A name that looks public does not make its server one of the network.
      {:public_redirects, wiki, moved.("https://10.0.0.2/"), "10.0.0.2:443: #{@reason}"},
      {:public_redirects, wiki, moved.(wiki <> "2"), "ok"},
      {:public_redirects, "https://10.0.0.3/", moved.("https://10.0.0.2/"), "ok"}
    ]

    for {option, first, answer, expected} <- rows do
      network = fn url -> if url == first, do: answer, else: "ok" end
      [http: http] = network(network)

      got =
        case HTTP.request(first, [redirects: 3, addresses: option] ++ http) do
          {:ok, response} -> response.body
          {:error, error} -> Exception.message(error)
        end

      assert {option, first, answer, got} == {option, first, answer, expected}
      if got =~ "private", do: refute_received({:fetched, "https://10.0.0.2/"})
    end

    assert_raise Skillbook.OptionError, fn -> HTTP.request(site, addresses: :private) end
  end

  # A site on the internet, whose skill is elsewhere or redirects there.
  test "a website's skill is not fetched from a name of a private network", %{tmp_dir: to} do
    site = "https://" <> name("site")
    page = skill("one")

    install = fn source, addresses, options ->
      case Package.install(source, network(addresses, [to: to] ++ accept_all() ++ options)) do
        {:ok, [%{error: nil, action: action}]} -> action
        {:ok, [%{error: error}]} -> Exception.message(error)
        {:error, error} -> Exception.message(error)
      end
    end

    index = fn site, url ->
      %{
        (site <> "/.well-known/agent-skills/index.json") =>
          index([row("one", page, %{"url" => url})])
      }
    end

    for host <- @inside do
      url = "https://#{name(host)}/one"
      named = Map.put(index.(site, url), url, page)
      moved = Map.merge(named, index.(site, "/one"))
      moved = Map.put(moved, site <> "/one", {302, [{"location", url}], ""})
      message = " could not be fetched: #{name(host)}:443: #{@reason}"

      assert install.(site, named, []) == url <> message
      assert install.(site, moved, []) == site <> "/one" <> message
      refute_received {:fetched, ^url}
    end

    # The host that a person named may be anywhere, unless the application excludes it.
    wiki = "https://" <> name("wiki")
    own = wiki |> index.("/one") |> Map.put(wiki <> "/one", page)
    refused = " could not be fetched: #{name("wiki")}:443: #{@reason}"
    url = wiki <> "/.well-known/agent-skills/index.json"
    strict = own |> network() |> Keyword.update!(:http, &Keyword.put(&1, :addresses, :public))
    assert {:error, error} = Package.install(wiki, [to: to] ++ accept_all() ++ strict)
    assert Exception.message(error) == url <> refused
    assert install.(wiki, own, []) == :installed

    # An archive's address, and programs that ask by themselves.
    moved = %{(site <> "/a.zip") => {302, [{"location", wiki <> "/a.zip"}], ""}}
    assert install.(site <> "/a.zip", moved, []) == site <> "/a.zip" <> refused

    for git <- ["https://site.test-a.example/x.git", "ssh://a.example/x", "a@b.example:x"] do
      assert {:error, error} = Package.install(git, to: to, http: [addresses: :public])

      assert Exception.message(error) ==
               git <>
                 " would be fetched by git, which may ask any address; use the https " <>
                 "address of an archive"
    end
  end
end
