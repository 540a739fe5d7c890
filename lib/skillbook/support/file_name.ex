defmodule Skillbook.Support.FileName do
  @moduledoc false
  # The rules for the names of files and folders that are installed or created, so that they mean
  # the same on every system and to every reader.

  alias Skillbook.Support.Hidden

  @max_bytes 255

  # Names that Windows reserves for devices, with any extension.
  @devices ~w(con prn aux nul conin$ conout$) ++
             for(name <- ~w(com lpt), n <- 1..9, do: "#{name}#{n}")

  @doc """
  Checks one name of a path. The reason is a verb phrase about the path.

      iex> Skillbook.Support.FileName.check("Meeting notes.md")
      :ok
      iex> Skillbook.Support.FileName.check("nul.md")
      {:error, "has the name of a Windows device"}
  """
  @spec check(binary()) :: :ok | {:error, String.t()}
  def check(name) do
    cond do
      not String.valid?(name) -> {:error, "has a name that is not UTF-8"}
      name in ["", ".", ".."] -> {:error, "leads out of its folder"}
      byte_size(name) > @max_bytes -> {:error, "has a name of more than #{@max_bytes} bytes"}
      String.downcase(name) == ".git" -> {:error, "belongs to a git repository"}
      hidden?(name) -> {:error, "has invisible characters in its name"}
      name =~ ~r/[<>:"|?*\/\\]|[. ]\z/ -> {:error, "has a name that Windows does not allow"}
      device?(name) -> {:error, "has the name of a Windows device"}
      true -> :ok
    end
  end

  # Joiners and characters without a meaning yet are refused too, although texts may have them.
  defp hidden?(name),
    do: name =~ ~r/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/u or Hidden.any?(name)

  defp device?(name) do
    base = name |> String.downcase() |> String.split(".", parts: 2) |> hd()
    String.trim_trailing(base) in @devices
  end
end
