import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'
import { CONFIG_OPTION } from '../../src/cli/configuration.ts'
import { configuredVendors, presetVariables } from '../../src/cli/configured-vendors.ts'
import { readServeSettings } from '../../src/cli/serve-settings.ts'
import { SETTINGS, VENDOR_VARIABLES } from '../../src/cli/settings.ts'
import { ENDPOINTS } from '../../src/endpoints/registry.ts'
import { type Preset, presets } from '../../src/vendors/presets/presets.ts'
import { firstTable, ROOT, readPage, readPages, section } from './support/markdown.ts'

const variables = readPage('docs/configuration.md')
const options = readPage('docs/options.md')
const NAME = /\b(?:HOST|PORT|REDIS_URL|SIGNALBOX_[A-Z_]+|[A-Z]+_API_KEY|[A-Z]+_BASE_URL)\b/g

function source(path: string): string {
  return readFileSync(join(ROOT, 'src', path), 'utf8')
}

function namesIn(text: string): string[] {
  return [...new Set(text.match(NAME))].sort()
}

/** Variables that `signalbox serve` reads for vendors with a separate page. */
const PRESET_NAMES = Object.values<Preset>(presets).flatMap((preset) => {
  const { keys, baseURL } = presetVariables(preset)
  return [...keys, baseURL]
})

/** Variables that `signalbox serve` reads, without those of clouds and proxies. */
function namesInCode(): string[] {
  const read = new Set<string>(['SIGNALBOX_CONFIG'])
  const environment = new Proxy<Record<string, undefined>>({}, { get: (_, name) => void read.add(String(name)) })
  readServeSettings(environment)
  configuredVendors(environment, undefined)
  return [...read].filter((name) => namesIn(name)[0] === name && !PRESET_NAMES.includes(name)).sort()
}

test('the page lists exactly the variables that serve reads', () => {
  const [, ...rows] = firstTable(section(variables, 'Environment variables'))

  const listed = rows.flatMap((row) => namesIn(row[0] ?? '').filter((name) => !PRESET_NAMES.includes(name))).sort()

  expect(listed).toEqual(namesInCode())
})

test('every variable in the help of the command is one that serve reads, and the other way round', () => {
  const told = [...SETTINGS, ...VENDOR_VARIABLES].map(({ variable }) => variable)
  const expected = namesInCode()

  expect(
    namesIn(`${told.join(' ')} ${CONFIG_OPTION.config.text}`).filter((name) => !PRESET_NAMES.includes(name)),
  ).toEqual(expected)
})

test('names no signalbox variable on any page that does not exist', () => {
  const known = [...namesInCode(), ...PRESET_NAMES]
  const ours = /^(?:SIGNALBOX_|.*_BASE_URL$)/

  const unknown = readPages().flatMap((other) =>
    namesIn(other.text).filter((name) => ours.test(name) && !known.includes(name)),
  )

  expect(unknown).toEqual([])
})

test('the page lists every option of createGateway', () => {
  const file = ts.createSourceFile('x.ts', source('gateway/options.ts'), ts.ScriptTarget.Latest)
  const members = file.statements
    .filter((node) => ts.isInterfaceDeclaration(node))
    .filter((node) => node.name.text === 'GatewayOptions')
    .flatMap((node) => node.members.map((member) => (member.name as ts.Identifier).text))

  const [, ...rows] = firstTable(section(options, 'Options'))

  expect(rows.map((row) => row[0])).toEqual(members)
})

test('the defaults of the timeouts are those of the code', () => {
  const code = /DEFAULT_TIMEOUTS: Timeouts = \{(.*)\}/.exec(source('gateway/options.ts'))?.[1] ?? ''
  const defaults = [...code.matchAll(/(\w+): ([\d_]+)/g)].map(([, name, value]) => [
    name,
    `${Number(value?.replaceAll('_', '')) / 1000} s`,
  ])

  const [, ...rows] = firstTable(section(options, 'Timeouts'))

  expect(rows.map(([name, value]) => [name, value])).toEqual(defaults)
})

test('the page of mounts lists the path of every endpoint', () => {
  const routes = section(readPage('docs/mounting.md'), 'Routes')

  expect(ENDPOINTS.map(({ path }) => path).filter((path) => !routes.includes(`\`${path}\``))).toEqual([])
})
