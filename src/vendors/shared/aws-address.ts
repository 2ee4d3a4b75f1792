import { awsDomain } from '../../credentials/aws-identity.ts'
import { type VendorAddress, vendorAddress } from './vendor-address.ts'

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/

/** Where to reach an AWS service: in a region, or at the operator's address, such as a private endpoint. */
export interface AwsLocation {
  readonly region?: string | undefined
  readonly endpoint?: string | undefined
}

/**
 * Returns the address of a service: `endpoint` as given, or that of the region.
 * @param service First label of the host.
 * @throws TypeError unless exactly one of the two is given, and for an invalid region or endpoint.
 */
export function awsAddress(factory: string, service: string, { region, endpoint }: AwsLocation): VendorAddress {
  if (region === undefined && endpoint === undefined) throw new TypeError(`${factory}: set region or endpoint`)
  if (region !== undefined && endpoint !== undefined)
    throw new TypeError(`${factory}: set only one of region and endpoint`)
  if (endpoint !== undefined) return vendorAddress(endpoint)
  if (!REGION.test(region!))
    throw new TypeError(`${factory}: region must be an AWS region, such as eu-central-1: ${JSON.stringify(region)}`)
  return { origin: `https://${service}.${region}.${domainOf(service, region!)}`, prefix: '' }
}

/** Hosts of the newer kind have their own domain. */
function domainOf(service: string, region: string): string {
  return service.endsWith('-mantle') ? 'api.aws' : awsDomain(region)
}
