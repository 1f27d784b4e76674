// Uses a client that was generated from GET /openapi.json: makes a session, runs a command, reads a file.
// node client.mjs FOLDER URL ADMIN_TOKEN; prints what came of it as one line of JSON.
import { createRequire } from "node:module";

const [folder, url, admin] = process.argv.slice(2);
const { OpenAPI, CommandsService, FilesService, SessionsService } = createRequire(import.meta.url)(`${folder}/index.js`);

OpenAPI.BASE = url;
OpenAPI.TOKEN = admin;
const session = await SessionsService.createSession({ requestBody: { limits: { memory_mb: 256 } } });
const found = { session: session.id };
try {
  OpenAPI.TOKEN = session.token;
  found.reply = await CommandsService.runCommand({ requestBody: { command: "printf 'from inside' >a.txt; exit 3" } });
  found.exec = await CommandsService.getExec({ exec: found.reply.id });
  found.files = await FilesService.downloadFiles({ requestBody: { paths: ["a.txt"] } });
  found.error = await CommandsService.getExec({ exec: "e_nowhere" }).catch((e) => ({ status: e.status, body: e.body }));
} finally {
  OpenAPI.TOKEN = admin;
  found.end = await SessionsService.deleteSession({ session: session.id });
}
console.log(JSON.stringify(found));
