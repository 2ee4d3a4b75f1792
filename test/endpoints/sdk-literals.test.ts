import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type SdkLiteral, type SdkSearch, sdkLiterals, sdkMembers } from '../support/sdk-literals.ts'
import { SDK_OMISSIONS } from '../support/sdk-omissions.ts'

const SRC = join(import.meta.dirname, '../../src')

/** Returns the text of a file, or of a folder. `folder/messages-*` stands for the files with that prefix, `folder/!messages-*` for the others. */
function textOf(place: string): string {
  const [, folder = place, isOther, prefix] = /^(.*)\/(!?)([\w-]+-)\*$/.exec(place) ?? []
  const path = join(SRC, folder)
  if (statSync(path).isFile()) return readFileSync(path, 'utf8')
  return readdirSync(path, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && (prefix === undefined || name.startsWith(prefix) === (isOther === '')))
    .map((name) => readFileSync(join(path, name), 'utf8'))
    .join('\n')
}

/** Code that reads OpenAI's dialect, and code that reads Anthropic's. A word that only one of them has is unknown to the other. */
const OPENAI = ['vendors/shared/!messages-*', 'vendors/openai']
const ANTHROPIC = ['endpoints/messages', 'vendors/shared/messages-*', 'vendors/anthropic']
const BATCHES = ['tasks/batches', 'vendors/shared/openai-batches.ts', 'gateway/openapi']

/** Members that decide how a request or an answer is read. */
const KINDS = ['type', 'finish_reason', 'stop_reason'] as const

/** Declaration files, with the places whose code reads what they declare. */
const FILES: Readonly<Record<string, SdkSearch & { readonly places: readonly string[] }>> = {
  'openai/resources/chat/completions/completions.d.ts': { members: KINDS, places: ['endpoints/chat', ...OPENAI] },
  'openai/resources/responses/responses.d.ts': {
    members: KINDS,
    places: ['endpoints/responses', 'endpoints/chat', ...OPENAI],
  },
  'openai/resources/images.d.ts': { members: KINDS, places: ['endpoints/images', 'endpoints/image-edits', ...OPENAI] },
  'openai/resources/audio/transcriptions.d.ts': { members: KINDS, places: ['endpoints/transcriptions', ...OPENAI] },
  'openai/resources/audio/speech.d.ts': {
    members: [...KINDS, 'response_format', 'stream_format', 'voice'],
    types: ['SpeechModel'],
    places: ['endpoints/speech', 'catalog/models', ...OPENAI],
  },
  'openai/resources/embeddings.d.ts': {
    members: [...KINDS, 'object', 'encoding_format'],
    types: ['EmbeddingModel'],
    places: ['endpoints/embeddings', 'catalog/models', ...OPENAI],
  },
  'openai/resources/batches.d.ts': {
    members: [...KINDS, 'object', 'status', 'completion_window', 'endpoint', 'anchor'],
    places: [...BATCHES, 'endpoints'],
  },
  'openai/resources/files.d.ts': {
    members: [...KINDS, 'object', 'status', 'purpose', 'anchor', 'order'],
    types: ['FilePurpose'],
    places: BATCHES,
  },
  'openai/resources/videos.d.ts': {
    members: [...KINDS, 'object', 'status', 'variant', 'order', 'error_type'],
    types: ['VideoModel', 'VideoSeconds', 'VideoSize'],
    places: ['endpoints/videos', 'endpoints/task.ts'],
  },
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': { members: KINDS, places: ANTHROPIC },
  '@anthropic-ai/sdk/resources/beta/messages/messages.d.ts': { members: KINDS, places: ANTHROPIC },
}

const GENAI = '@google/genai/dist/genai.d.ts'

/** Request and answer types of Google's SDK that a translation of chats, images or embeddings can use. */
const GENAI_TYPES = [
  ...[
    'GenerateContentConfig',
    'Content',
    'Part',
    'FileData',
    'FunctionDeclaration',
    'FunctionCall',
    'FunctionResponse',
  ],
  ...['Tool', 'ToolConfig', 'FunctionCallingConfig', 'ThinkingConfig', 'Schema', 'ImageConfig', 'EmbedContentConfig'],
  ...['Candidate', 'GenerateContentResponseUsageMetadata'],
] as const

const isQuoted = (code: string, value: string): boolean =>
  ["'", '"', '`'].some((quote) => code.includes(`${quote}${value}${quote}`))

/** An entry that the code knows by now, or that the SDK has no more, is removed from the list. */
function expectListed(file: string, unknown: readonly SdkLiteral[]): void {
  const listed = (SDK_OMISSIONS[file] ?? []).flatMap(({ literals }) => literals.trim().split(/\s*,\s*/))
  expect(unknown.map(({ member, value }) => `${member} ${value}`).toSorted()).toEqual(listed.toSorted())
}

test.each(Object.entries(FILES))(
  'knows each literal of %s, or lists it as an omission',
  (file, { places, ...search }) => {
    const code = places.map(textOf).join('\n')
    const literals = sdkLiterals(file, search)

    expect(literals.length).toBeGreaterThan(0)
    expectListed(
      file,
      literals.filter(({ value }) => !isQuoted(code, value)),
    )
  },
)

test(`knows each reason and member of ${GENAI} that a translation can use, or lists it as an omission`, () => {
  const code = textOf('vendors/gemini')
  const reasons = sdkLiterals(GENAI, { members: [], types: ['FinishReason', 'BlockedReason'] })
  const members = sdkMembers(GENAI, GENAI_TYPES)

  expectListed(GENAI, [
    ...reasons.filter(({ value }) => !isQuoted(code, value)),
    ...members.filter(({ value }) => !new RegExp(`\\b${value}\\b`).test(code)),
  ])
})

test('gives each omission a reason, and lists no literal twice', () => {
  for (const [file, omissions] of Object.entries(SDK_OMISSIONS)) {
    const listed = omissions.flatMap(({ literals }) => literals.trim().split(/\s*,\s*/))
    expect(new Set(listed).size, file).toBe(listed.length)
    for (const { reason } of omissions) expect(reason).toMatch(/^[A-Z].{20,}\.$/)
  }
})
