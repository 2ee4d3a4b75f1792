import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Circuit } from '../../src/routing/candidate.ts'
import { type EligibleCandidate, eligibleCandidates, type SelectionContext } from '../../src/routing/selection.ts'

interface Facts {
  readonly model: string
  readonly vendor: string
  readonly priority: number
  readonly lastTurn: number
  readonly state: Circuit
  readonly isExcluded: boolean
}

const CLOSED: Facts = {
  model: 'asked',
  vendor: 'one',
  priority: 0,
  lastTurn: 0,
  state: 'closed',
  isExcluded: false,
}

class Stand implements EligibleCandidate {
  readonly facts: Facts
  readonly model: { readonly id: string }
  readonly vendor: { readonly id: string }
  readonly priority: number
  readonly lastTurn: number

  constructor(facts: Partial<Facts>) {
    this.facts = { ...CLOSED, ...facts }
    this.model = { id: this.facts.model }
    this.vendor = { id: this.facts.vendor }
    this.priority = this.facts.priority
    this.lastTurn = this.facts.lastTurn
  }

  circuitAt(): Circuit {
    return this.facts.state
  }
}

function choose(candidates: readonly Stand[], rest: Partial<SelectionContext<Stand>> = {}): readonly Stand[] {
  return eligibleCandidates(candidates, {
    nowMs: 0,
    isFirst: true,
    mayProbe: true,
    isExcluded: ({ facts }) => facts.isExcluded,
    ownsReasoning: () => false,
    lastFailed: undefined,
    ...rest,
  })
}

const facts = fc.record({
  model: fc.constantFrom('asked', 'fallback'),
  vendor: fc.constantFrom('one', 'two', 'three'),
  priority: fc.nat(2),
  lastTurn: fc.nat(9),
  state: fc.constantFrom<Circuit>('closed', 'half-open', 'open'),
  isExcluded: fc.boolean(),
})
/** In the order in which they are listed: the model asked for before its fallbacks. */
const someCandidates = fc
  .array(facts, { maxLength: 10 })
  .map((list) => list.sort((one, other) => one.model.localeCompare(other.model)).map((each) => new Stand(each)))
const situations = fc.record({
  isFirst: fc.boolean(),
  mayProbe: fc.boolean(),
  lastFailed: fc.option(fc.record({ vendorId: fc.constantFrom('one', 'two', 'three'), isOfKey: fc.boolean() }), {
    nil: undefined,
  }),
})

describe('whatever the state', () => {
  test('excludes ejected candidates while another is healthy', () => {
    fc.assert(
      fc.property(someCandidates, situations, (candidates, situation) => {
        const chosen = choose(candidates, situation)
        const areOthersWell = candidates.some(({ facts: each }) => !each.isExcluded && each.state === 'closed')

        if (areOthersWell) expect(chosen.filter(({ facts: each }) => each.state === 'open')).toEqual([])
        if (areOthersWell && !situation.mayProbe)
          expect(chosen.every(({ facts: each }) => each.state === 'closed')).toBe(true)
        expect(chosen.filter(({ facts: each }) => each.isExcluded)).toEqual([])
      }),
      { numRuns: 2000 },
    )
  })

  test('the last one is never refused: the first attempt of a request always finds a candidate', () => {
    fc.assert(
      fc.property(someCandidates, situations, (candidates, situation) => {
        const isAnybodyLeft = candidates.some(({ facts: each }) => !each.isExcluded)

        expect(choose(candidates, { ...situation, isFirst: true }).length > 0).toBe(isAnybodyLeft)
      }),
      { numRuns: 2000 },
    )
  })

  test('the chosen candidates have the same model, priority and circuit state', () => {
    fc.assert(
      fc.property(someCandidates, situations, (candidates, situation) => {
        const chosen = choose(candidates, situation)

        expect(
          new Set(chosen.map(({ facts: each }) => `${each.model} ${each.priority} ${each.state}`)).size,
        ).toBeLessThan(2)
      }),
      { numRuns: 1000 },
    )
  })

  test('no more is tried after a failure when all others are ejected', () => {
    const candidates = [new Stand({ isExcluded: true }), new Stand({ vendor: 'two', state: 'open' })]

    expect(choose(candidates, { isFirst: false })).toEqual([])
  })
})

test('prefers the requested model to its fallbacks, even if its priority comes later', () => {
  const asked = new Stand({ priority: 1 })

  expect(choose([asked, new Stand({ model: 'fallback' })])).toEqual([asked])
})

test('prefers a fallback if the requested model is ejected', () => {
  const fallback = new Stand({ model: 'fallback' })

  expect(choose([new Stand({ state: 'open' }), fallback])).toEqual([fallback])
})

test('prefers the smallest priority among candidates of one model', () => {
  const first = new Stand({ vendor: 'two' })

  expect(choose([new Stand({ priority: 1 }), first])).toEqual([first])
})

test("prefers another key of the vendor after a key's failure, and another vendor after a vendor's failure", () => {
  const sameVendor = new Stand({ vendor: 'one' })
  const otherVendor = new Stand({ vendor: 'two' })
  const after = (isOfKey: boolean): readonly Stand[] =>
    choose([sameVendor, otherVendor], { isFirst: false, lastFailed: { vendorId: 'one', isOfKey } })

  expect(after(true)).toEqual([sameVendor])
  expect(after(false)).toEqual([otherVendor])
})

test('one whose ejection is over is asked before healthy ones, so that it comes back', () => {
  const probe = new Stand({ vendor: 'two', state: 'half-open' })

  expect(choose([new Stand({}), probe])).toEqual([probe])
  expect(choose([new Stand({}), probe], { mayProbe: false })).toEqual([new Stand({})])
})

test('when all are ejected, the least recently used one is asked', () => {
  const stale = new Stand({ vendor: 'two', state: 'open', lastTurn: 3 })

  expect(choose([new Stand({ state: 'open', lastTurn: 7 }), stale])).toEqual([stale])
})

test('prefers the vendor that created the reasoning in a request, over priorities', () => {
  const author = new Stand({ vendor: 'two', priority: 1 })

  expect(choose([new Stand({}), author], { ownsReasoning: ({ vendor }) => vendor.id === 'two' })).toEqual([author])
})
