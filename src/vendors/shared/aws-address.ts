import { awsDomain } from '../../credentials/aws-identity.ts'
import { type VendorAddress, vendorAddress } from './vendor-address.ts'

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/

/** Where a service of AWS is reached: in a region, or at an address of the operator's, such as a private endpoint. */
export interface AwsLocation {
  readonly region?: string | undefined
  readonly endpoint?: string | undefined
}

/**
 * The address of a service: `endpoint` as given, or that of the region.
 * @param service First label of the host.
 * @throws TypeError unless exactly one of the two is given, for a region that is no name of one, and for an endpoint that cannot be
 *   used.
 */
export function awsAddress(factory: string, service: string, { region, endpoint }: AwsLocation): VendorAddress {
  if (region === undefined && endpoint === undefined) throw new TypeError(`${factory}: set region or endpoint`)
  if (region !== undefined && endpoint !== undefined)
    throw new TypeError(`${factory}: set only one of region and endpoint`)
  if (endpoint !== undefined) return vendorAddress(endpoint)
  if (!REGION.test(region!))
    throw new TypeError(`${factory}: region is no region of AWS, such as eu-central-1: ${JSON.stringify(region)}`)
  return { origin: `https://${service}.${region}.${domainOf(service, region!)}`, prefix: '' }
}

/** The newer kind of host has a domain of its own. */
function domainOf(service: string, region: string): string {
  return service.endsWith('-mantle') ? 'api.aws' : awsDomain(region)
}
