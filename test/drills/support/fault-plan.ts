import type { DrillCall } from './drill-calls.ts'
import { FAULT_TIMEOUTS, isConnectionFault, isLarge, isLong } from './fault-drill-settings.ts'
import { expectedOutcome, type Fault, type Outcome } from './fault-expectations.ts'
import { CONNECTION_FAULTS, type ConnectionFault, type FaultVendor } from './fault-vendor.ts'
import type { GatewaySettings } from './gateway-process.ts'
import type { CallForm } from './right-answer.ts'
import { seededNumbers } from './seeded-numbers.ts'
import { VENDOR_FAULTS, type VendorFault } from './vendor-faults.ts'

const FORMS: readonly CallForm[] = ['chat', 'stream', 'embeddings', 'image']

/** Vendors that fail are ejected for a while; with several, there is always one that is not. */
const FIRST_VENDORS = isLong ? 24 : 6
const CALLS = isLong ? 5_000 : 200
const SEED = 20_461

/** A mixture of calls that meet faults and calls that meet none. */
export interface Mix {
  readonly name: string
  /** Stands a healthy vendor behind each one that has faults? */
  readonly hasSecond: boolean
  /** Share of the calls with a fault. */
  readonly faultShare: number
}

/** Call with its planned faults. */
export interface PlannedCall extends DrillCall {
  readonly connectionFault: ConnectionFault | undefined
}

/** Whether a fault affects this call at the first vendor. */
export function hasFault({ fault, connectionFault }: PlannedCall): boolean {
  return fault !== undefined || connectionFault !== undefined
}

/** The vendors of a mixture. */
export interface MixVendors {
  readonly faulty: FaultVendor
  readonly healthy: FaultVendor
  /** Unreachable vendors, in the order of {@link CONNECTION_FAULTS}. */
  readonly unreachable: readonly FaultVendor[]
}

/** The calls of a mixture: the same in every run. */
export function planOf({ faultShare }: Mix): PlannedCall[] {
  const random = seededNumbers(SEED)
  const anyOf = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)]!
  const faults = [...CONNECTION_FAULTS, ...VENDOR_FAULTS].filter((fault) => !isLarge(fault))
  return Array.from({ length: CALLS }, (_none, call): PlannedCall => {
    const fault: Fault | undefined = random() < faultShare ? anyOf(faults) : undefined
    const form = anyOf(FORMS)
    const vendor = `first-${Math.floor(random() * FIRST_VENDORS)}`
    return fault !== undefined && isConnectionFault(fault)
      ? { call, form, route: routeOf(fault), fault: undefined, connectionFault: fault }
      : { call, form, route: vendor, fault: fault as VendorFault | undefined, connectionFault: undefined }
  })
}

/** The gateway for a mixture: a route for each vendor that has faults, and for each that cannot be reached. */
export function gatewayFor({ hasSecond }: Mix, { faulty, healthy, unreachable }: MixVendors): GatewaySettings {
  const second = { id: 'second', origin: healthy.origin }
  const firsts = [
    ...Array.from({ length: FIRST_VENDORS }, (_none, index) => ({ id: `first-${index}`, origin: faulty.origin })),
    ...CONNECTION_FAULTS.map((fault, index) => ({ id: routeOf(fault), origin: unreachable[index]!.origin })),
  ]
  return {
    vendors: [...firsts, second],
    routes: firsts.map(({ id }) => ({ name: id, vendors: hasSecond ? [id, second.id] : [id] })),
    timeouts: FAULT_TIMEOUTS,
  }
}

/**
 * Returns the expected result of a planned call. `struck` contains the calls that met their fault; a call whose vendor was ejected
 * meets none.
 */
export function plannedOutcome({ hasSecond }: Mix, planned: PlannedCall, struck: ReadonlySet<number>): Outcome {
  const met = planned.connectionFault ?? (struck.has(planned.call) ? planned.fault : undefined)
  return expectedOutcome(met, planned.form, hasSecond)
}

function routeOf(fault: ConnectionFault): string {
  return fault.toLowerCase().replaceAll(' ', '-')
}
