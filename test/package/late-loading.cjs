// Runs in a project that has the packed package, on any host that has `require`: loads each module that is loaded late.
const assert = require('node:assert/strict')
const { mkdtempSync, rmSync } = require('node:fs')
const { tmpdir } = require('node:os')
const { join } = require('node:path')

const API_KEY = 'sk-late'

/** Answers speech in MP3, `/openapi.json`, a list of batches, a checked answer, and calls on a SQLite store. */
module.exports = async function loadAll() {
  const { createGateway, dashscope, directoryBlobs, gemini, jsonAnswer } = require('signalbox')
  const { sqliteStore } = require('signalbox/sqlite')
  const { sandboxVendors } = require('signalbox/testing')
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-late-'))
  const sandbox = sandboxVendors()
  const { origin } = await sandbox.listen()
  const vendor = { apiKey: 'vendor-key', baseURL: origin }
  const gateway = createGateway({
    vendors: [dashscope(vendor), gemini(vendor)],
    keys: [{ key: API_KEY, account: 'late' }],
    billing: 'off',
    store: sqliteStore({ path: join(folder, 'store.db') }),
    batches: { blobs: directoryBlobs({ path: join(folder, 'blobs') }) },
    hooks: [jsonAnswer()],
  })
  const call = (path, body) =>
    gateway.fetch(
      new Request(`http://host.example${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${API_KEY}` },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    )
  try {
    await gateway.start()
    assert.equal((await (await call('/openapi.json')).json()).openapi.slice(0, 2), '3.')
    assert.equal((await (await call('/v1/batches')).json()).data.length, 0)
    const speech = {
      model: 'qw3-tts-flash',
      input: 'smoke signal',
      voice: 'Cherry',
      response_format: 'mp3',
    }
    const audio = await call('/v1/audio/speech', speech)
    assert.equal(audio.status, 200, await audio.clone().text())
    assert.equal(audio.headers.get('content-type'), 'audio/mpeg')
    const schema = { type: 'object', properties: {}, required: [], additionalProperties: false }
    const answer = await call('/v1/chat/completions', {
      model: 'gmn-2.5-flash',
      messages: [{ role: 'user', content: 'smoke signal' }],
      response_format: { type: 'json_schema', json_schema: { name: 'none', schema } },
    })
    assert.equal(answer.status, 200, await answer.clone().text())
  } finally {
    await gateway.close({ drainMs: 1000 })
    await sandbox.close()
    rmSync(folder, { recursive: true, force: true })
  }
}
