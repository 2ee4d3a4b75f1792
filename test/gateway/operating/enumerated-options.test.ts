import { describe, expect, test } from 'vitest'
import type { ModelDefinition } from '../../../src/catalog/model.ts'
import { createGateway } from '../../../src/gateway/gateway.ts'
import { postgresStore } from '../../../src/stores/postgres/postgres-store.ts'
import { sqliteStore } from '../../../src/stores/sqlite/sqlite-store.ts'
import { amazonBedrock } from '../../../src/vendors/amazon-bedrock/amazon-bedrock.ts'
import { anthropicBedrock } from '../../../src/vendors/anthropic/anthropic.ts'
import { azureOpenai } from '../../../src/vendors/azure-openai/azure-openai.ts'
import { dashscope } from '../../../src/vendors/dashscope/dashscope.ts'
import { gemini } from '../../../src/vendors/gemini/gemini.ts'
import { openai } from '../../../src/vendors/openai/openai.ts'
import { openaiCompatible } from '../../../src/vendors/openai-compatible/openai-compatible.ts'

const AWS = { apiKey: 'k', region: 'eu-central-1' } as const
const PLAIN = { id: 'plain', baseURL: 'https://plain.example/v1', apiKey: 'k', models: [] } as const
const VENDORS = [
  openai({ apiKey: 'k' }),
  azureOpenai({ apiKey: 'k', resource: 'r' }),
  gemini({ apiKey: 'k' }),
  dashscope({ apiKey: 'k' }),
  amazonBedrock(AWS),
  amazonBedrock({ ...AWS, id: 'mantle', service: 'bedrock-mantle' }),
  openaiCompatible(PLAIN),
  openaiCompatible({ ...PLAIN, id: 'answers', responses: true }),
]

const gatewayWith = (row: object): unknown =>
  createGateway({
    vendors: VENDORS,
    billing: 'off',
    authenticate: () => undefined,
    models: [{ id: 'm', kind: 'chat', vendor: 'openai', ...row } as ModelDefinition],
  })

describe('protocol of a row', () => {
  test.each([
    [{ vendor: 'openai', protocol: 'banana' }, 'chat models of openai have responses.'],
    [{ vendor: 'openai', protocol: 'converse' }, 'chat models of openai have responses.'],
    [{ vendor: 'azure-openai', protocol: 'openai' }, 'chat models of azure-openai have responses.'],
    [{ vendor: 'amazon-bedrock', protocol: 'invoke' }, 'chat models of amazon-bedrock have openai, converse.'],
    [{ vendor: 'amazon-bedrock', protocol: 'responses' }, 'chat models of amazon-bedrock have openai, converse.'],
    [{ vendor: 'mantle', protocol: 'converse' }, 'chat models of mantle have openai.'],
    [{ vendor: 'plain', protocol: 'responses' }, 'Remove it: chat models of plain have none.'],
    [{ vendor: 'gemini', protocol: 'interactions' }, 'Remove it: chat models of gemini have none.'],
    [{ vendor: 'openai', kind: 'image', protocol: 'multimodal' }, 'image models of openai have generations.'],
    [{ vendor: 'dashscope', kind: 'video', protocol: 'wan-3' }, 'video models of dashscope have wan-2-6, wan-2-7.'],
    [
      { vendor: 'openai', kind: 'embedding', protocol: 'generations' },
      'Remove it: embedding models of openai have none.',
    ],
    [
      { routes: [{ vendor: 'amazon-bedrock' }, { vendor: 'openai' }], protocol: 'banana' },
      'chat models of openai and amazon-bedrock have responses, openai, converse.',
    ],
  ])('rejects %j at start and names the known values', (row, rest) => {
    const message = `model "m": the protocol ${JSON.stringify(row.protocol)} is unknown. ${rest}`

    expect(() => gatewayWith(row)).toThrow(new TypeError(message))
  })

  test.each([
    { vendor: 'openai', protocol: 'responses' },
    { vendor: 'answers', protocol: 'responses' },
    { vendor: 'amazon-bedrock', protocol: 'converse' },
    { vendor: 'mantle', protocol: 'openai' },
    { vendor: 'gemini', kind: ['chat', 'image'], protocol: 'interactions' },
    { vendor: 'openai', kind: 'image_edit', protocol: 'generations' },
    { vendor: 'dashscope', kind: 'video', protocol: 'wan-2-7' },
    { routes: [{ vendor: 'plain' }, { vendor: 'amazon-bedrock' }], protocol: 'converse' },
    { vendor: 'of-another-host', protocol: 'banana' },
  ])('accepts %j', (row) => {
    expect(() => gatewayWith(row)).not.toThrow()
  })

  test('is checked in rows of a vendor too', () => {
    const vendor = openaiCompatible({ ...PLAIN, models: [{ id: 'm', kind: 'chat', protocol: 'banana' }] })

    expect(() => createGateway({ vendors: [vendor], billing: 'off', authenticate: () => undefined })).toThrow(
      'model "m": the protocol "banana" is unknown',
    )
  })
})

const VIDEO = { task: 't2v', geometry: 'size', resolutions: ['720p'], durations: [5] }
const SPEECH = { voices: ['a'], takesInstructions: false, maxCharacters: 5 }

describe('an enumerated member', () => {
  test.each<[string, () => unknown]>([
    ['createGateway: models[0].video.task', () => gatewayWith({ kind: 'video', video: { ...VIDEO, task: 'banana' } })],
    [
      'createGateway: models[0].video.geometry',
      () => gatewayWith({ kind: 'video', video: { ...VIDEO, geometry: 'banana' } }),
    ],
    [
      'createGateway: models[0].speech.formats',
      () => gatewayWith({ kind: 'speech', speech: { ...SPEECH, formats: ['mp3', 'banana'] } }),
    ],
    [
      'createGateway: models[0].transcription.formats',
      () => gatewayWith({ kind: 'transcription', transcription: { streams: false, formats: 'banana' } }),
    ],
    ['createGateway: models[0].inputModalities', () => gatewayWith({ inputModalities: ['text', 'banana'] })],
    ['createGateway: models[0].outputModalities', () => gatewayWith({ outputModalities: ['banana'] })],
    ['createGateway: models[0].abilities', () => gatewayWith({ abilities: ['banana'] })],
    ['amazonBedrock: service', () => amazonBedrock({ ...AWS, service: 'banana' as never })],
    ['anthropicBedrock: service', () => anthropicBedrock({ ...AWS, service: 'banana' as never })],
    ['sqliteStore: clock', () => sqliteStore({ path: ':memory:', clock: 'banana' as never })],
    ['postgresStore: clock', () => postgresStore({ pool: {} as never, clock: 'banana' as never })],
  ])('%s is rejected with the accepted values', (path, start) => {
    expect(start).toThrow(new RegExp(`^${path.replace(/[[\]]/g, '\\$&')} must be one of .+; got "banana"$`))
  })
})
