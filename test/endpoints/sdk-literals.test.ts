import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sdkLiterals } from '../support/sdk-literals.ts'
import { SDK_OMISSIONS } from '../support/sdk-omissions.ts'

const SRC = join(import.meta.dirname, '../../src')

function textOf(folders: readonly string[]): string {
  return folders
    .flatMap((folder) =>
      readdirSync(join(SRC, folder), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => readFileSync(join(SRC, folder, name), 'utf8')),
    )
    .join('\n')
}

const SHARED = ['vendors/shared', 'vendors/openai', 'vendors/anthropic'] as const

/** Declaration files, with the folders whose code reads what they declare. */
const FILES = {
  'openai/resources/chat/completions/completions.d.ts': ['endpoints/chat', ...SHARED],
  'openai/resources/responses/responses.d.ts': ['endpoints/responses', 'endpoints/chat', ...SHARED],
  'openai/resources/images.d.ts': ['endpoints/images', 'endpoints/image-edits', ...SHARED],
  'openai/resources/audio/transcriptions.d.ts': ['endpoints/transcriptions', ...SHARED],
  '@anthropic-ai/sdk/resources/messages/messages.d.ts': ['endpoints/messages', 'endpoints/chat', ...SHARED],
  '@google/genai/dist/genai.d.ts': ['vendors/gemini'],
} as const

test.each(Object.entries(FILES))('knows each literal of %s, or lists it as an omission', (file, folders) => {
  const code = textOf(folders)
  const unknown = sdkLiterals(file, file.startsWith('@google') ? ['FinishReason', 'BlockedReason'] : [])
    .filter(({ member }) => !file.startsWith('@google') || member.endsWith('Reason'))
    .filter(({ value }) => !["'", '"', '`'].some((quote) => code.includes(`${quote}${value}${quote}`)))
    .map(({ member, value }) => `${member} ${value}`)
  const listed = (SDK_OMISSIONS[file] ?? []).flatMap(({ literals }) => literals.trim().split(/\s*,\s*/))

  // An entry that the code knows by now, or that the SDK has no more, is removed from the list.
  expect(unknown.toSorted()).toEqual(listed.toSorted())
})
