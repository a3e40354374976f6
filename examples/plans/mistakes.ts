// A plan with three mistakes that a dry run finds before anything is written.
const { files } = await mcp.files.list_folder({ folder: "/reports" });

for (const file of files) {
  await mcp.files.write_file({ path: file.path + ".bak", content: file.size });
}
await mcp.files.remove_file({ path: "/reports/old.md" });
