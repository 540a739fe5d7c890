defmodule Skillbook.MCP.Client.SkillURI do
  @moduledoc false
  # The URIs of skills and their files. They are names within one server: nothing here, and
  # nothing that uses them, opens one. Paths that could mean another place anywhere are refused.

  @max 2_048

  @doc """
  Reads the URI of a `SKILL.md`: the skill's root, and the segments of its path.

      iex> Skillbook.MCP.Client.SkillURI.skill("skill://acme/refunds/SKILL.md")
      {:ok, "skill://acme/refunds/", ["acme", "refunds"]}
      iex> Skillbook.MCP.Client.SkillURI.skill("file:///etc/SKILL.md")
      :error
  """
  @spec skill(term()) :: {:ok, String.t(), [String.t(), ...]} | :error
  def skill(uri) do
    with true <- text?(uri),
         [scheme, rest] <- String.split(uri, "://", parts: 2),
         true <- scheme =~ ~r/\A[A-Za-z][A-Za-z0-9+.-]*\z/ and String.downcase(scheme) != "file",
         {:ok, segments} <- segments(rest),
         {path, ["SKILL.md"]} when path != [] <- Enum.split(segments, -1),
         true <- String.ends_with?(uri, "/SKILL.md") do
      {:ok, String.replace_suffix(uri, "SKILL.md", ""), path}
    else
      _ -> :error
    end
  end

  @doc """
  Reads the URI of a file of a skill with this root: its path in the skill.

      iex> Skillbook.MCP.Client.SkillURI.file("skill://a/docs/x%20y.md", "skill://a/")
      {:ok, "docs/x y.md"}
      iex> Skillbook.MCP.Client.SkillURI.file("skill://a/../b/x.md", "skill://a/")
      :error
  """
  @spec file(term(), String.t()) :: {:ok, String.t()} | :error
  def file(uri, root) do
    with true <- text?(uri) and String.starts_with?(uri, root),
         {:ok, segments} <- uri |> String.replace_prefix(root, "") |> segments(),
         do: {:ok, Enum.join(segments, "/")},
         else: (_ -> :error)
  end

  defp text?(uri),
    do: is_binary(uri) and byte_size(uri) <= @max and String.valid?(uri) and uri =~ ~r/\A[!-~]+\z/

  defp segments(path) do
    segments = path |> String.split("/") |> Enum.map(&decode/1)
    if Enum.all?(segments, &segment?/1), do: {:ok, segments}, else: :error
  end

  defp decode(segment) do
    if segment =~ ~r/%(?![0-9A-Fa-f]{2})/ or segment =~ ~r/[?#]/,
      do: nil,
      else: URI.decode(segment)
  end

  # Separators, also of other systems, control characters and characters that nobody sees.
  defp segment?(segment) do
    is_binary(segment) and segment not in ["", ".", ".."] and String.valid?(segment) and
      not (segment =~ ~r|[/\\:\x00-\x1f\x7f]|) and
      Skillbook.Support.Hidden.visible(segment) == segment
  end
end
