import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { modelDefinition } from '../../src/catalog/parse-model-definitions.ts'
import { MODEL_KINDS } from '../../src/core/model-kind.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../../src/endpoints/token-estimate.ts'
import { DASHSCOPE_FIELDS } from '../../src/vendors/dashscope/dashscope.ts'
import { CHAT_FIELDS as GEMINI } from '../../src/vendors/gemini/chat-to-wire.ts'
import { MESSAGES_CHAT_FIELDS as ANTHROPIC } from '../../src/vendors/shared/messages-from-chat.ts'
import { OPENAI_REASONING_FIELDS } from '../../src/vendors/shared/openai-chat-dialect.ts'
import { CHAT_FIELDS as RESPONSES } from '../../src/vendors/shared/responses-from-chat.ts'
import { firstTable, readPage, section } from './support/markdown.ts'

const page = readPage('docs/models.md')

/** Rule of a table for a field, in the page's words; `otherwise` for fields that it does not contain. */
function ruleOf(table: Readonly<Record<string, unknown>>, field: string, otherwise: string): string {
  const rule = table[field]
  if (rule === undefined) return otherwise
  if (rule === 'pass') return 'passes'
  if (rule === 'drop') return 'dropped'
  return typeof rule === 'string' ? rule : 'mapped'
}

test('the page shows what each vendor does with each chat parameter', () => {
  const tables = [OPENAI_REASONING_FIELDS, DASHSCOPE_FIELDS, ANTHROPIC, GEMINI, RESPONSES]
  const fields = [...new Set(tables.flatMap((table) => Object.keys(table)))]
  const expected = fields.map((field) => [
    field,
    ruleOf(OPENAI_REASONING_FIELDS, field, 'passes'),
    // Fields that are omitted at every server of the dialect except OpenAI's own are in no table.
    field === 'moderation' ? 'dropped' : ruleOf(DASHSCOPE_FIELDS, field, 'passes'),
    ruleOf(ANTHROPIC, field, 'dropped'),
    ruleOf(GEMINI, field, 'dropped'),
    ruleOf(RESPONSES, field, 'dropped'),
  ])

  const [, ...rows] = firstTable(section(page, 'Chat parameters'))

  expect(rows).toEqual(expected)
})

test('the page lists the built-in models of the endpoints that exist', () => {
  const served = createCatalog(BUILT_IN_MODELS)
    .list()
    .filter((model) => model.kinds.some((kind) => kind === 'chat' || kind === 'embedding'))

  const [, ...rows] = firstTable(section(page, 'Built-in models'))

  expect(rows).toEqual(
    served.map((model) => [
      model.id,
      model.kinds.join(', '),
      model.vendor,
      model.upstream === model.id ? 'the same' : model.upstream,
    ]),
  )
})

test('the page lists every kind of model that a row can have', () => {
  expect(page.text).toContain(
    `| \`kind\` | ${MODEL_KINDS.map((kind) => `\`${kind}\``).join(', ')}, or a list of them |`,
  )
})

test('the page lists every member that a row can have', () => {
  const [, ...rows] = firstTable(section(page, 'Adding models'))
  const named = rows.flatMap(([members = '']) => members.replaceAll('`', '').split(', '))

  expect(named.sort()).toEqual(Object.keys(modelDefinition().shape).sort())
})

test('the page says the tokens that a row without a limit is held for', () => {
  expect(section(page, 'Adding models')).toContain(DEFAULT_MAX_OUTPUT_TOKENS.toLocaleString('en'))
})

test('every endpoint that the README names exists, and every endpoint that exists is named there', () => {
  const named = [...section(readPage('README.md'), 'What works today').matchAll(/`(?:POST )?(\/v\d\/[\w/]+)`/g)]
  const paths = [...new Set(named.map(([, path]) => path!))].filter((path) => !CALLS_NO_MODEL.includes(path))

  expect(paths.sort()).toEqual(ENDPOINTS.map(({ path }) => path).sort())
})

/** Named in the README, and not of those that call models. */
const CALLS_NO_MODEL = ['/v1/models', '/v1/account', '/v1/estimate', '/v1/files', '/v1/batches', '/v1/messages/batches']
