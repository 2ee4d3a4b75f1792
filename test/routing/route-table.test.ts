import { describe, expect, test } from 'vitest'
import { createCatalog } from '../../src/catalog/catalog.ts'
import { defineModel, type ModelDefinition, type ModelRoute } from '../../src/catalog/model.ts'
import { parseModelDefinitions } from '../../src/catalog/parse-model-definitions.ts'
import { stickyKey } from '../../src/pipeline/estimate.ts'
import { catalogForRoutes, RouteTable } from '../../src/routing/candidate.ts'
import { openaiCompatible } from '../../src/vendors/openai-compatible/openai-compatible.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'

function vendor(id: string, apiKeys: readonly string[], keyWeights?: readonly number[]): Vendor {
  const made = openaiCompatible({ id, baseURL: 'http://127.0.0.1:9/v1', apiKey: apiKeys, models: [] })
  return { ...made, apiKeys, ...(keyWeights === undefined ? {} : { keyWeights }) }
}

const ROW: ModelDefinition = { id: 'public', kind: 'video', vendor: 'one', upstream: 'up' }

function candidatesOf(row: Partial<ModelDefinition>, fields: Record<string, string> = {}, kind = 'video') {
  const table = new RouteTable([vendor('one', ['a', 'b'], [3, 1]), vendor('two', ['c']), vendor('off', [])])
  return table.candidatesOf(defineModel({ ...ROW, ...row }), kind, fields)
}

const named = (candidates: ReturnType<typeof candidatesOf>): string[] =>
  candidates.map(({ model, apiKey, weight }) => `${model.id} ${model.vendor}/${model.upstream} ${apiKey} ${weight}`)

describe('the candidates of a model', () => {
  test('without routes are the keys of its own vendor, by their weights', () => {
    expect(named(candidatesOf({}))).toEqual(['public one/up a 0.75', 'public one/up b 0.25'])
  })

  test('are its routes if it has any, the smallest priority first, and a route shares its weight among its keys', () => {
    const routes = [
      { vendor: 'two', upstream: 'other', priority: 1 },
      { vendor: 'one', weight: 4 },
      { vendor: 'off' },
      { vendor: 'unknown' },
    ]

    expect(named(candidatesOf({ routes }))).toEqual(['public one/up a 3', 'public one/up b 1', 'public two/other c 1'])
  })

  test('depend on billing fields and kind where a route says when', () => {
    const routes: ModelRoute[] = [
      { vendor: 'two', when: { resolution: '720p' } },
      { vendor: 'one', when: { kind: 'image', toString: 'x' } },
    ]
    const vendorsOf = (fields: Record<string, string>, kind: string): string[] =>
      candidatesOf({ routes }, fields, kind).map(({ apiKey }) => apiKey)

    expect(vendorsOf({ resolution: '720p' }, 'video')).toEqual(['c'])
    expect(vendorsOf({ resolution: '1080p' }, 'video')).toEqual([])
    expect(vendorsOf({}, 'image')).toEqual([])
    expect(vendorsOf({ toString: 'x' }, 'image')).toEqual(['a', 'b'])
  })

  test('are made once, so that what is known of them lasts', () => {
    const table = new RouteTable([vendor('one', ['a'])])
    const model = defineModel(ROW)

    expect(table.candidatesOf(model, 'video', {})).toBe(table.candidatesOf(model, 'video', {}))
  })
})

describe('routes in a catalog', () => {
  test('are read from JSON, and faults are named', () => {
    const routes = [{ vendor: 'one', upstream: 'x', weight: 0.5, priority: 2, when: { resolution: '720p' } }]
    const parse = (route: object) => () => parseModelDefinitions([{ ...ROW, routes: [route] }])

    expect(parseModelDefinitions([{ ...ROW, routes }])[0]?.routes).toEqual(routes)
    expect(parse({})).toThrow('models[0].routes[0].vendor')
    expect(parse({ vendor: 'one', weight: 0 })).toThrow('models[0].routes[0].weight')
    expect(parse({ vendor: 'one', model: 'x' })).toThrow('models[0].routes[0]')
    expect(() => parseModelDefinitions([{ ...ROW, routes: [] }])).toThrow('models[0].routes')
  })

  test.each([[{ weight: 0 }], [{ weight: Number.NaN }], [{ priority: -1 }], [{ priority: 0.5 }]])(
    'are also rejected in code with %j',
    (member) => {
      expect(() => defineModel({ ...ROW, routes: [{ vendor: 'one', ...member }] })).toThrow(RangeError)
    },
  )

  test('change nothing about a catalog without them', () => {
    const catalog = createCatalog([ROW])

    expect(catalogForRoutes(catalog, new Map(), 'on-failure')).toBe(catalog)
  })

  test('lead to the first vendor that is configured, and keep aliases and fallbacks', () => {
    const rows: ModelDefinition[] = [
      { ...ROW, routes: [{ vendor: 'off' }, { vendor: 'two' }], aliases: ['nick'], fallbacks: ['spare'] },
      { ...ROW, id: 'spare' },
    ]
    const vendors = new Map(
      [vendor('one', ['a']), vendor('two', ['b']), vendor('off', [])].map((each) => [each.id, each]),
    )
    const catalog = catalogForRoutes(createCatalog(rows), vendors, 'on-failure')

    expect(catalog.find('nick')).toMatchObject({ id: 'public', vendor: 'two', upstream: 'up', fallbacks: ['spare'] })
    expect(catalogForRoutes(catalog, vendors, 'never').find('nick')?.fallbacks).toEqual([])
  })
})

describe('what binds a chat to a key', () => {
  const none = (): undefined => undefined
  const all = { model: 'm', prompt_cache_key: 'cache', user: 'user', metadata: { user_id: 'meta' } }

  test.each([
    ['the prompt cache', all, () => 'session', 'acct cache'],
    ['the session', { ...all, prompt_cache_key: '' }, () => 'session', 'acct session'],
    ['the end user', { ...all, prompt_cache_key: null }, none, 'acct user'],
    ['the end user as Anthropic writes it', { model: 'm', metadata: { user_id: 'meta' } }, none, 'acct meta'],
    ['nothing', { model: 'm', user: 7, metadata: null }, none, undefined],
  ])('is %s', (_name, body, header, expected) => {
    expect(stickyKey('acct', body, header)).toBe(expected)
  })

  test('is cut, however long it is', () => {
    expect(stickyKey('acct', { model: 'm', user: 'x'.repeat(1_000_000) } as { model: string }, none)).toHaveLength(261)
  })
})

describe('the probe of a half-open circuit', () => {
  test('stays the only one when a call that began before it is given up', () => {
    const [candidate] = candidatesOf({})
    const first = candidate!.begin(0, 1)
    candidate!.failed('busy', 1_000, 0, candidate!.begin(0, 2))
    const probe = candidate!.begin(1_000, 3)
    candidate!.failed('ignored', undefined, 1_500, first)

    expect([first, probe]).toEqual(['none', 'model'])
    expect(candidate!.circuitAt(1_500)).toBe('open')
    candidate!.failed('ignored', undefined, 1_600, probe)
    expect(candidate!.circuitAt(1_600)).toBe('half-open')
  })

  test('keeps the probe of a key the only one when another of its models is busy', () => {
    const table = new RouteTable([vendor('one', ['a'])])
    const candidateOf = (id: string) => table.candidatesOf(defineModel({ ...ROW, id }), 'video', {})[0]
    const model = candidateOf('public')
    const other = candidateOf('second')
    model!.failed('refused', undefined, 0, model!.begin(0, 1))
    const probe = model!.begin(30_000, 2)
    other!.failed('busy', 1_000, 30_000, other!.begin(30_000, 3))

    expect(probe).toBe('key')
    expect(model!.circuitAt(31_000)).toBe('open')
  })
})
