import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Sandbox, sandboxVendors } from '../../../src/testing/index.ts'
import { drawSound } from '../../../src/testing/sandbox/files/stored-files.ts'

const PATH = '/api/v1/services/aigc/multimodal-generation/generation'

let sandbox: Sandbox
let origin: string

beforeAll(async () => {
  sandbox = sandboxVendors()
  origin = (await sandbox.listen()).origin
})
beforeEach(() => sandbox.reset())
afterAll(() => sandbox.close())

function call(input: object, headers: Record<string, string> = {}, model = 'qwen3-tts-flash'): Promise<Response> {
  return fetch(`${origin}${PATH}`, {
    method: 'POST',
    headers: { authorization: 'Bearer any', 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model, input }),
  })
}

const EVENTS = { 'x-dashscope-sse': 'enable' }

test('events hold the samples, and the last one the end, the file and the usage', async () => {
  const answer = await call({ text: 'ab c', voice: 'Cherry' }, EVENTS)
  const frames = (await answer.text()).trimEnd().split('\n\n')
  const data = frames.map((frame) => JSON.parse(/^data:(.*)$/m.exec(frame)?.[1] ?? ''))
  const samples = data.map(({ output }) => Buffer.from(output.audio.data, 'base64'))

  expect(answer.headers.get('content-type')).toMatch(/^text\/event-stream/)
  expect(frames[0]).toMatch(/^id:1\nevent:result\n:HTTP_STATUS\/200\ndata:/)
  expect(Buffer.concat(samples).equals(drawSound('ab c'))).toBe(true)
  expect(data.map(({ output }) => output.finish_reason)).toEqual(['null', 'null', 'null', 'null', 'stop'])
  expect(data.at(-1)).toMatchObject({ usage: { characters: 4 }, output: { audio: { url: /^http:/ } } } as object)
})

test('without the header the answer links to a WAV file of the same sound', async () => {
  const answer = await (await call({ text: '你好 ab', voice: 'Ethan' })).json()
  const file = Buffer.from(await (await fetch(answer.output.audio.url)).arrayBuffer())

  expect(answer).toMatchObject({ output: { finish_reason: 'stop', audio: { data: '' } }, usage: { characters: 7 } })
  expect(file.toString('latin1', 0, 4)).toBe('RIFF')
  expect(file.readUInt32LE(40)).toBe(file.length - 44)
  expect(file.subarray(44).equals(drawSound('你好 ab'))).toBe(true)
})

test('a link that has expired is refused', async () => {
  const { output } = await (await call({ text: 'a', voice: 'Cherry' })).json()
  const url = output.audio.url.replace(/Expires=\d+/, 'Expires=1')

  expect((await fetch(url)).status).toBe(403)
})

describe('refusals', () => {
  test.each<[string, object, string, number, string]>([
    ['an unknown voice', { voice: 'Xenia' }, 'qwen3-tts-flash', 400, "The requested voice 'Xenia' is not supported."],
    ['no voice', { voice: undefined }, 'qwen3-tts-flash', 400, 'Field required: input.voice'],
    ['an empty text', { text: '' }, 'qwen3-tts-flash', 400, 'Range of input length should be [1, 600]: input.text'],
    [
      '601 characters',
      { text: 'a'.repeat(601) },
      'qwen3-tts-flash',
      400,
      'Range of input length should be [1, 600]: input.text',
    ],
    [
      '301 ideographs',
      { text: '中'.repeat(301) },
      'qwen3-tts-flash',
      400,
      'Range of input length should be [1, 600]: input.text',
    ],
    [
      'instructions',
      { instructions: 'calm' },
      'qwen3-tts-flash',
      400,
      'instructions is not supported: input.instructions',
    ],
    [
      'a voice of the other model',
      { voice: 'Ryan' },
      'qwen3-tts-instruct-flash',
      400,
      "The requested voice 'Ryan' is not supported.",
    ],
    ['an unknown model', {}, 'qwen3-tts-9', 404, 'Model not exist.'],
  ])('%s', async (_name, rest, model, status, message) => {
    const answer = await call({ text: 'a', voice: 'Cherry', ...rest }, EVENTS, model)

    expect(answer.status).toBe(status)
    expect(await answer.json()).toMatchObject({ code: expect.any(String), message, request_id: expect.any(String) })
  })

  test('reject an asynchronous call', async () => {
    const answer = await call({ text: 'a', voice: 'Cherry' }, { 'x-dashscope-async': 'enable' })

    expect(answer.status).toBe(403)
  })
})

test('fault marks in the text strike, and are not spoken', async () => {
  const spoken = await call({ text: '[[fault:no-usage]] ab', voice: 'Cherry' })
  const failed = await call({ text: '[[fault:status=503]] ab', voice: 'Cherry' }, EVENTS)
  const broken = await (await call({ text: '[[fault:error-event=1]] ab', voice: 'Cherry' }, EVENTS)).text()

  expect((await spoken.json()).usage).toBeUndefined()
  expect(failed.status).toBe(503)
  expect(broken).toMatch(/event:error\ndata:\{"code":"InternalError"/)
})
