import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { drawMask } from '../../examples/demo/draw-mask.mjs'
import { pictureFacts } from '../../examples/demo/image-facts.mjs'
import { progressBar } from '../../examples/demo/progress-bar.mjs'
import { soundFacts } from '../../examples/demo/sound-facts.mjs'
import { createTable, FREE } from '../../examples/demo/table.mjs'
import { videoFacts } from '../../examples/demo/video-facts.mjs'
import type { AccountBalance, VideoTask } from '../../src/client/index.ts'
import { formatDollars, parseDollars } from '../../src/core/money.ts'
import type { EndpointRequests } from '../../src/endpoints/registry.ts'
import { imageHeader } from '../../src/wire/image-header.ts'
import { type Ended, endOfExample } from './support/run-example.ts'

const PICTURES = {
  'multimodal.png': { format: 'png', width: 1664, height: 928 },
  'interaction.jpg': { format: 'jpeg', width: 1200, height: 896 },
  'interaction-continued.jpg': { format: 'jpeg', width: 1200, height: 896 },
  'generation.png': { format: 'png', width: 1024, height: 1024 },
  'edit.webp': { format: 'webp', width: 1024, height: 1536 },
} as const
const OTHERS = ['speech.mp3', 'speech.wav', 'vectors.f32', 'vectors.json', 'video-2.6.mp4', 'video-2.7.mp4']

/** Every call that a caller can make, the two ways in which some answer, and what an operator sees. */
const ENDPOINTS = [
  'account.balance',
  'audio.speech mp3',
  'audio.speech wav',
  'audio.transcriptions',
  'audio.transcriptions srt',
  'audio.transcriptions stream',
  'batches',
  'chat.completions',
  'chat.completions stream',
  'completions',
  'completions stream',
  'embeddings base64',
  'embeddings float',
  'estimate',
  'fail-over',
  'images.edit',
  'images.generate',
  'images.generate continued',
  'limit',
  'mcp chat_complete',
  'messages',
  'messages stream',
  'messages.batches',
  'messages.countTokens',
  'models.list',
  'moderations picture',
  'moderations texts',
  'refund',
  'refused balance',
  'rerank',
  'responses',
  'responses continued',
  'responses stream',
  'responses.countTokens',
  'videos webhook',
  'videos.cancel',
  'videos.content',
  'videos.generate',
  'videos.get',
  'videos.list',
  'videos.wait',
]

/** A row of each endpoint; the compiler requires one for a new endpoint. */
const ROW_OF_ENDPOINT = {
  chat: 'chat.completions',
  completions: 'completions',
  embeddings: 'embeddings float',
  image_edits: 'images.edit',
  images: 'images.generate',
  messages: 'messages',
  moderations: 'moderations texts',
  rerank: 'rerank',
  responses: 'responses',
  speech: 'audio.speech mp3',
  transcriptions: 'audio.transcriptions',
  videos: 'videos.generate',
} satisfies Record<keyof EndpointRequests, string>

interface PrintedRow {
  readonly endpoint: string
  readonly model: string
  readonly cost: bigint
  readonly balance: bigint
  readonly outcome: string
}

function rowsOf({ output }: Ended): readonly PrintedRow[] {
  const rows = output.matchAll(/^(\S.{27}) {2}(.{28}) {2} *\d+ {2} *([\d.]+) {2} *([\d.]+) {2}(ok|FAILED): /gm)
  return Array.from(rows, ([, endpoint = '', model = '', cost = '', balance = '', outcome = '']) => ({
    endpoint: endpoint.trim(),
    model: model.trim(),
    cost: parseDollars(cost),
    balance: parseDollars(balance),
    outcome,
  }))
}

let folder: string
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'signalbox-demo-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const fileOf = (name: string): Buffer => readFileSync(join(folder, name))

describe('the demo', () => {
  let ended: Ended
  let durationMs: number

  beforeAll(async () => {
    const startedAtMs = performance.now()
    ended = await endOfExample('demo', { DEMO_OUTPUT: folder })
    durationMs = performance.now() - startedAtMs
  })

  test('exits with status 0 within 30 seconds, every row of every endpoint ok', () => {
    const rows = rowsOf(ended)

    expect([ended.code, ended.output]).toEqual([0, expect.stringContaining(`${rows.length} rows, all ok`)])
    expect(durationMs).toBeLessThan(30_000)
    expect([...new Set(rows.map(({ endpoint }) => endpoint))].sort()).toEqual(ENDPOINTS)
    expect(ENDPOINTS).toEqual(expect.arrayContaining(Object.values(ROW_OF_ENDPOINT)))
    expect(new Set(rows.map(({ outcome }) => outcome))).toEqual(new Set(['ok']))
  })

  test('says above each group of rows what they prove, and runs no row outside of a group', () => {
    const [, ...groups] = ended.output.split(/^(?=\w+: .{20,}$)/m)
    const inGroups = groups.reduce((sum, output) => sum + rowsOf({ code: 0, output }).length, 0)

    expect(groups.map((group) => group.slice(0, group.indexOf(':')))).toEqual([
      'chats',
      'messages',
      'responses',
      'completions',
      'embeddings',
      'moderations',
      'rerank',
      'batches',
      'images',
      'speech',
      'transcriptions',
      'videos',
      'operations',
      'account',
    ])
    expect(inGroups).toBe(rowsOf(ended).length)
  })

  test('charges, row by row, what the account loses from the first balance to the last', () => {
    const rows = rowsOf(ended)
    const started = parseDollars(/^balance at the start: ([\d.]+)$/m.exec(ended.output)?.[1] ?? '')
    const costs = rows.reduce((sum, { cost }) => sum + cost, 0n)

    expect(costs).toBeGreaterThan(0n)
    expect(started - (rows.at(-1)?.balance ?? 0n)).toBe(costs)
    expect(ended.output).toContain(`${formatDollars(costs)} spent`)
  })

  test('writes every file and nothing else', () => {
    expect(readdirSync(folder).sort()).toEqual([...Object.keys(PICTURES), ...OTHERS].sort())
  })

  test.each(Object.entries(PICTURES))('writes %s as an image of the requested size and format', (name, facts) => {
    expect(imageHeader([fileOf(name)])).toMatchObject(facts)
  })

  test('the vectors are as many and as long as asked for, and the same in both encodings', () => {
    const { vectors } = JSON.parse(fileOf('vectors.json').toString()) as { vectors: number[][] }
    const bytes = fileOf('vectors.f32')
    const floats = Array.from({ length: bytes.byteLength / 4 }, (_, index) => bytes.readFloatLE(4 * index))

    expect(vectors.map(({ length }) => length)).toEqual([512, 512])
    expect(floats).toEqual(vectors.flat())
  })

  test('sound and videos begin as their formats do', () => {
    expect(fileOf('speech.mp3').readUInt16BE(0) & 0xffe0).toBe(0xffe0)
    expect(fileOf('speech.wav').toString('latin1', 0, 4)).toBe('RIFF')
    for (const name of ['video-2.6.mp4', 'video-2.7.mp4']) {
      expect(fileOf(name).toString('latin1', 4, 8)).toBe('ftyp')
    }
  })

  test('shows without a terminal how the videos go on, in plain lines', () => {
    expect(ended.output).toMatch(/^ {2}wv2\.6-t2v completed \d+\.\d s$/m)
    expect(ended.output).toMatch(/^ {2}wv2\.7-r2v completed \d+\.\d s$/m)
    for (const control of ['\r', '\x1b']) expect(ended.output).not.toContain(control)
  })

  test.each([
    ['a picture', pictureFacts, ['multimodal.png', 'interaction.jpg', 'edit.webp']],
    ['an MP3', soundFacts, ['speech.mp3']],
    ['a video', videoFacts, ['video-2.6.mp4']],
  ])(
    'its check of %s refuses a file that is cut off, and any other',
    (_, factsOf: (bytes: Buffer) => unknown, names) => {
      for (const name of names) {
        const bytes = fileOf(name)

        expect(() => factsOf(bytes)).not.toThrow()
        expect(() => factsOf(bytes.subarray(0, bytes.length - 1))).toThrow('are no')
        expect(() => factsOf(bytes.subarray(0, 20))).toThrow('are no')
        expect(() => factsOf(Buffer.alloc(0))).toThrow('are no')
        expect(() => factsOf(fileOf('vectors.json'))).toThrow('are no')
      }
    },
  )
})

test('exits the demo with status 1 if a vendor is broken, names the reason, and runs the other rows', async () => {
  const output = mkdtempSync(join(folder, 'broken-'))

  const ended = await endOfExample('demo', { DEMO_OUTPUT: output, DEMO_BROKEN_VENDOR: 'voyage' })

  const rows = rowsOf(ended)
  const failed = rows.filter((row) => row.outcome === 'FAILED')
  expect(ended.code).toBe(1)
  expect(failed.map(({ endpoint }) => endpoint)).toEqual(['embeddings float', 'embeddings base64'])
  expect(rows.length - failed.length).toBeGreaterThan(30)
  expect(ended.output).toContain('FAILED: 503 upstream_unavailable: ')
  expect(ended.output).toContain(`${rows.length} rows, 2 FAILED`)
  expect(readdirSync(output)).not.toContain('vectors.json')
})

describe('a row of the demo', () => {
  /** A client whose account has these balances, one for each look. */
  const clientWith = (...balances: string[]) => ({
    account: {
      balance: (): Promise<AccountBalance> => {
        const balance = balances.shift() ?? ''
        return Promise.resolve({
          object: 'account',
          id: 'a',
          balance,
          held: '0',
          owed: '0',
          currency: 'USD',
          tier: 'paid',
        })
      },
    },
  })

  test.each([
    ['the account lost what it cost', '8', '2', true, 'ok: done'],
    ['the account lost more', '7', '2', false, 'FAILED: it is said to cost 2, and the account lost 3'],
    ['the account lost something and it was free', '9', FREE, false, 'FAILED: it is said to cost 0, and the account'],
    ['nobody says what it cost', '10', undefined, false, 'FAILED: nobody says what it cost'],
    ['it should have cost something', '10', '0.0', false, 'FAILED: it cost nothing'],
  ])('when %s', async (_, after, cost, isOk, note) => {
    const lines: string[] = []
    const table = await createTable(clientWith('10', after), (line) => lines.push(line))

    await table.row('chat', 'a-model', async () => ({ note: 'done', cost }))

    expect(table.rows).toMatchObject([{ isOk, note: expect.stringContaining(note) }])
    expect(lines.at(-1)).toContain(note)
  })

  test('fails with what its call has thrown, and gives nothing', async () => {
    const table = await createTable(clientWith('10', '10'), () => undefined)

    const value = await table.row('chat', 'a-model', () => Promise.reject(new Error('no\n  answer')))

    expect(value).toBeUndefined()
    expect(table.rows).toMatchObject([{ isOk: false, note: 'FAILED: no answer', cost: 0n }])
  })
})

test('the progress bar of the demo fills on a terminal, never before the end, and makes way then', () => {
  let written = ''
  const show = progressBar('wv', 1_000, { isTTY: true, write: (text) => (written = text) })
  const at = (status: VideoTask['status'], elapsedMs: number): string => {
    show({ task: { status } as VideoTask, elapsedMs })
    return written
  }

  expect(at('queued', 0)).toContain(`[${'.'.repeat(24)}] wv queued 0.0 s`)
  expect(at('in_progress', 500)).toContain(`[${'#'.repeat(12)}${'.'.repeat(12)}]`)
  expect(at('in_progress', 90_000)).toContain(`[${'#'.repeat(23)}.]`)
  expect(at('completed', 90_100)).toBe('\r\x1b[2K')
})

test('the mask of the demo is a PNG with alpha', () => {
  expect(imageHeader([drawMask(1024, 512)])).toEqual({ format: 'png', width: 1024, height: 512, hasAlpha: true })
})
