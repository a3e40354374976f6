// A plan that deletes: every report below 100 bytes goes.
const { files } = await mcp.files.list_folder({ path: "/reports" });
const small = files.filter((file: { size: number }) => file.size < 100);

for (const file of small) {
  await mcp.files.delete_file({ path: file.path });
}
console.log(`deleted ${small.length} of ${files.length} reports`);
small.map((file: { path: string }) => file.path);
