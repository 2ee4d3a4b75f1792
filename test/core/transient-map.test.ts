import fc from 'fast-check'
import { expect, test } from 'vitest'
import { TransientMap } from '../../src/core/maps.ts'

const KEYS = Array.from({ length: 50 }, (_, index) => `key-${index}`)

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant('set' as const), key: fc.constantFrom(...KEYS), value: fc.nat() }),
  },
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('delete' as const), key: fc.constantFrom(...KEYS) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('clear' as const) }) },
)

test('a transient map holds what a map holds, in the same order', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const map = new TransientMap<string, number>()
      const model = new Map<string, number>()
      for (const done of steps) {
        if (done.kind === 'set') {
          map.set(done.key, done.value)
          model.set(done.key, done.value)
        } else if (done.kind === 'delete') expect(map.delete(done.key)).toBe(model.delete(done.key))
        else {
          map.clear()
          model.clear()
        }
        expect(map.size).toBe(model.size)
      }
      for (const key of KEYS) expect([map.has(key), map.get(key)]).toEqual([model.has(key), model.get(key)])
      expect([...map]).toEqual([...model])
      expect([...map.keys()]).toEqual([...model.keys()])
      expect([...map.values()]).toEqual([...model.values()])
    }),
  )
})

test('entries may be deleted while they are iterated over', () => {
  const map = new TransientMap<number, string>()
  for (let key = 0; key < 200; key++) map.set(key, `value ${key}`)

  const seen: number[] = []
  for (const [key] of map) {
    seen.push(key)
    map.delete(key)
  }

  expect(seen).toEqual(Array.from({ length: 200 }, (_, key) => key))
  expect(map.size).toBe(0)
})
