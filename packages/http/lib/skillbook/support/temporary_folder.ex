defmodule Skillbook.Support.TemporaryFolder do
  @moduledoc false
  # Folders for the time of one function, which only this user can read.

  @doc "Calls the function with a new folder, which is deleted afterwards."
  @spec with_folder((Path.t() -> result)) :: result when result: term()
  def with_folder(fun) do
    name = "skillbook-" <> Base.encode16(:crypto.strong_rand_bytes(12))
    folder = Path.join(System.tmp_dir!(), name)

    try do
      File.mkdir!(folder)
      File.chmod!(folder, 0o700)
      fun.(folder)
    after
      File.rm_rf(folder)
    end
  end
end
