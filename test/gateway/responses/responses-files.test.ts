import { afterEach, beforeEach, expect, test } from 'vitest'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'

let started: StartedGateway

beforeEach(async () => {
  started = await startGateway({ allowPrivateUrls: false })
})

afterEach(() => started.close())

const ask = (model: string, file: object) =>
  started.post('/v1/responses', {
    model,
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Sum it up' },
          { type: 'input_file', ...file },
        ],
      },
    ],
  })

const URL_OF_FILE = 'https://files.example/report.pdf'

test('a file by its address is left to vendors that fetch it', async () => {
  const answers = [
    await ask('cl-sonnet-4-6', { file_url: URL_OF_FILE, filename: 'report.pdf' }),
    await ask('gmn-2.5-pro', { file_url: URL_OF_FILE }),
  ]
  const sent = started.sandbox.requests.map(({ body }) => JSON.stringify(body))

  for (const answer of answers) expect(answer.status, await answer.text()).toBe(200)
  expect(sent[0]).toContain(`{"type":"document","source":{"type":"url","url":"${URL_OF_FILE}"},"title":"report.pdf"}`)
  expect(sent[1]).toContain(`{"fileData":{"mimeType":"application/pdf","fileUri":"${URL_OF_FILE}"}}`)
})

test.each([
  ['chat-qwen', { file_url: URL_OF_FILE }, 'file_url'],
  ['cl-sonnet-4-6', { file_url: 'http://127.0.0.1/report.pdf' }, 'file_url'],
  ['gmn-2.5-pro', { file_url: 'gs://bucket/report.pdf' }, 'file'],
  ['cl-sonnet-4-6', { file_id: 'file-1' }, 'file_id'],
])('sends nothing to a vendor for %s %j', async (model, file, param) => {
  const answer = await ask(model, file)

  expect(answer.status).toBe(400)
  expect(((await answer.json()) as { error: { param: string } }).error.param).toContain(param)
  expect(started.sandbox.requests).toHaveLength(0)
})
