import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import type { VideoAbilities } from '../../src/catalog/model.ts'
import { BUILT_IN_MODELS } from '../../src/catalog/models/built-in-models.ts'
import { ERROR_TABLE } from '../../src/core/errors.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { parseVideoRequest } from '../../src/endpoints/videos/video-endpoint.ts'
import { durationsText } from '../../src/endpoints/videos/video-protocol.ts'
import { matchRoute } from '../../src/gateway/routes.ts'
import { EndpointTable } from '../../src/pipeline/pipeline-context.ts'
import { OPEN_TASK_STATES, type TaskState } from '../../src/stores/task-store.ts'
import { dashscope } from '../../src/vendors/dashscope/dashscope.ts'
import { codeBlocks, firstTable, ROOT, readPage, section } from './support/markdown.ts'

const page = readPage('docs/video.md')
const catalog = createCatalog(BUILT_IN_MODELS)

const KINDS = { t2v: 'text', i2v: 'image', r2v: 'references' } as const
const GEOMETRIES = { size: '`size`', resolution: '`resolution`', 'resolution-ratio': '`resolution`, `ratio`' } as const

function secondsOf({ durations, durationsWithReferenceVideo: shorter }: VideoAbilities): string {
  const text = durationsText(durations).replace(' seconds', '')
  return shorter === undefined
    ? text
    : `${text}; ${durationsText(shorter).replace(' seconds', '')} with a reference video`
}

test('the table of models is that of the catalog', () => {
  const expected = catalog
    .list()
    .filter(({ kinds }) => kinds.includes('video'))
    .map(({ id, protocol, video }) => [
      id,
      KINDS[video!.task],
      protocol === 'wan-2-7' ? '2.7' : '2.6',
      video!.resolutions.join(', '),
      secondsOf(video!),
      GEOMETRIES[video!.geometry],
    ])

  const [, ...rows] = firstTable(section(page, 'Models'))

  // A cell of one word in backquotes has lost them.
  expect(rows.map((row) => row.with(5, row[5]!.replace(/^(\w+)$/, '`$1`')))).toEqual(expected)
})

test('every body that the page shows is taken', () => {
  const bodies = codeBlocks(page)
    .filter(({ language }) => language === 'json')
    .map(({ code }) => JSON.parse(code) as { model?: string; input?: object })
    .filter(({ input }) => input !== undefined)

  expect(bodies).toHaveLength(6)
  for (const body of bodies) {
    const model = catalog.find(body.model ?? '')!
    expect(parseVideoRequest(body, model)).toMatchObject(body)
  }
})

test('the page shows every state, and which of them are final', () => {
  const [, ...rows] = firstTable(section(page, 'States'))
  const final: readonly TaskState[] = ['completed', 'failed', 'cancelled']
  // Nobody sees a task that is being submitted.
  const states = [...OPEN_TASK_STATES.filter((state) => state !== 'submitting'), ...final]

  expect(rows.map(([state]) => state).sort()).toEqual([...states].sort())
  for (const [state, , isFinal] of rows) expect(isFinal).toBe(final.includes(state as TaskState) ? 'yes' : 'no')
})

test('every route of the page exists', () => {
  const [, ...rows] = firstTable(page.text)
  const missing = rows.filter(([request = '']) => {
    const [method = '', path = ''] = request.split(' ')
    const match = matchRoute(new EndpointTable(ENDPOINTS), method, path.replace('{id}', 'task_0123'))
    return match === undefined || !('target' in match)
  })

  expect(rows.length).toBe(7)
  expect(missing).toEqual([])
})

test('every error of the page exists with its status', () => {
  const [, ...rows] = firstTable(section(page, 'Errors'))
  const statuses = new Map(Object.entries(ERROR_TABLE).map(([code, { status }]) => [code, String(status)]))
  const wrong = rows.filter(([code = '', status]) => statuses.get(code) !== status)

  expect(rows.length).toBeGreaterThan(10)
  expect(wrong).toEqual([])
})

test('the codes of failed tasks are those of the code', () => {
  const folder = join(ROOT, 'src/tasks')
  const source = readdirSync(folder)
    .filter((name) => name.endsWith('.ts'))
    .map((name) => readFileSync(join(folder, name), 'utf8'))
    .join('\n')
  const written = [...source.matchAll(/\bcode: '((?:task|submission)_\w+)'/g)].map(([, code]) => code)

  const [, ...rows] = firstTable(section(page, 'Poll'))

  expect(rows.map(([code]) => code).sort()).toEqual([...new Set(written)].sort())
})

test('the numbers for operators are those of the code', () => {
  const { pollIntervalMs, pollBudget } = dashscope({ apiKey: 'key' }).videos!
  const operators = section(page, 'For operators').replaceAll('\n  ', ' ')

  expect(operators).toContain(`every ${pollIntervalMs / 1_000} seconds`)
  expect(operators).toContain(`${pollBudget.takes} times in every ${pollBudget.windowMs} ms`)
})
