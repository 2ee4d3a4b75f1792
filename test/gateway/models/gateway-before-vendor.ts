import { afterEach } from 'vitest'
import type { GatewayEvent } from '../../../src/core/events.ts'
import type { GatewayOptions } from '../../../src/gateway/options.ts'
import { type StartedGateway, startGateway } from '../../support/start-gateway.ts'
import { type AnswerCall, type AnsweringVendor, answeringVendor } from '../streams/answering-vendor.ts'

/** A gateway of one test, before a vendor that the test scripts. */
export interface GatewayBeforeVendor {
  readonly started: StartedGateway
  /** Undefined where the test has started a gateway alone. */
  readonly vendor: AnsweringVendor | undefined
  start(answer: AnswerCall, options: (origin: string) => Partial<GatewayOptions>): Promise<void>
  /** Starts a gateway with the stand-ins. */
  startAlone(options?: Partial<GatewayOptions>): Promise<void>
  /** The events of one type so far. */
  eventsOf<Type extends GatewayEvent['type']>(type: Type): Extract<GatewayEvent, { type: Type }>[]
}

/** Registers one for each test of a file; closed when the test is over. */
export function gatewayBeforeVendor(): GatewayBeforeVendor {
  let started: StartedGateway
  let vendor: AnsweringVendor | undefined
  afterEach(async () => {
    await started.close()
    await vendor?.close()
    vendor = undefined
  })
  return {
    get started() {
      return started
    },
    get vendor() {
      return vendor
    },
    async start(answer, options) {
      vendor = await answeringVendor(answer)
      started = await startGateway(options(vendor.origin))
    },
    async startAlone(options) {
      started = await startGateway(options)
    },
    eventsOf<Type extends GatewayEvent['type']>(type: Type) {
      return started.events.filter((event): event is Extract<GatewayEvent, { type: Type }> => event.type === type)
    },
  }
}
