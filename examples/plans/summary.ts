// A plan without mistakes: it reads every report and writes one summary.
const { files } = await mcp.files.list_folder({ path: "/reports" });

const titles = await Promise.all(
  files.map(async (file: { path: string }) => {
    const text: string = await mcp.files.read_file({ path: file.path });
    return `- ${text.split("\n")[0]}`;
  }),
);

await mcp.files.write_file({ path: "/reports/summary.md", content: titles.join("\n") });
({ reports: files.length });
