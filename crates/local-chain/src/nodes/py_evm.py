"""A node of py-evm, the EVM in Python, on a free port. Arguments: a directory, which is not used, and the port, or 0.

It takes one call in a request, has no method eth_maxPriorityFeePerGas, and refuses a nonce that leaves a gap, as some
nodes of private chains do.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import RLock

from eth._utils.address import generate_contract_address
from eth.chains.base import MiningChain
from eth.consensus import ConsensusApplier, NoProofConsensus
from eth.constants import CREATE_CONTRACT_ADDRESS
from eth.db.atomic import AtomicDB
from eth.vm.forks import BerlinVM, CancunVM, LondonVM, ShanghaiVM
from eth.vm.spoof import SpoofTransaction
from eth_account import Account
from eth_keys import keys
from eth_utils import ValidationError, decode_hex, encode_hex

OPTIONS = json.loads(os.environ["CHAIN_OPTIONS"])
FORKS = {"berlin": BerlinVM, "london": LondonVM, "shanghai": ShanghaiVM, "cancun": CancunVM}
FORK = OPTIONS["hardfork"] or "cancun"
GAS_LIMIT = 30_000_000
GWEI = 10**9
MNEMONIC = "test test test test test test test test test test test junk"


class RpcError(Exception):
    def __init__(self, message, code=-32000, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message} | ({"data": data} if data else {})


def accounts():
    Account.enable_unaudited_hdwallet_features()
    for index in range(10):
        yield Account.from_mnemonic(MNEMONIC, account_path=f"m/44'/60'/0'/0/{index}")


ACCOUNTS = list(accounts())


def start_chain():
    forks = ConsensusApplier(NoProofConsensus).amend_vm_configuration(((0, FORKS[FORK]),))

    class Chain(MiningChain):
        chain_id = OPTIONS["chain_id"]
        vm_configuration = forks

    balance = {"balance": 10_000 * 10**18, "nonce": 0, "code": b"", "storage": {}}
    state = {decode_hex(account.address): balance for account in ACCOUNTS}
    genesis = {"gas_limit": GAS_LIMIT, "difficulty": 1 if FORK in ("berlin", "london") else 0}
    base_fee = OPTIONS["base_fee_gwei"]
    if base_fee is not None and FORK != "berlin":
        genesis["base_fee_per_gas"] = base_fee * GWEI
    return Chain.from_genesis(AtomicDB(), genesis, state)


class Node:
    def __init__(self):
        self.chain = start_chain()
        self.pool = []
        self.automine = OPTIONS["mining"] != "manual"
        self.blocks = {}  # the block and the index of each mined transaction

    # The chain

    def head(self):
        return self.chain.get_canonical_head()

    def header(self, tag="latest"):
        head = self.head()
        if tag in ("latest", "pending", "safe", "finalized"):
            return head
        number = 0 if tag == "earliest" else int(tag, 16)
        return self.chain.get_canonical_block_header_by_number(number) if number <= head.block_number else None

    def state(self, tag="latest"):
        header = self.header(tag)
        if header is None:
            raise RpcError("header not found")
        return self.chain.get_vm(header).state

    def next_base_fee(self):
        return getattr(self.chain.header, "base_fee_per_gas", None) if FORK != "berlin" else None

    def mine(self, count):
        for _ in range(count):
            state, taken, used = self.state(), [], 0
            nonces, fee = {}, self.next_base_fee() or 0
            for transaction in sorted(self.pool, key=lambda it: it.nonce):
                sender = transaction.sender
                nonce = nonces.get(sender, state.get_nonce(sender))
                fits = used + transaction.gas <= GAS_LIMIT
                if transaction.nonce == nonce and transaction.max_fee_per_gas >= fee and fits:
                    taken.append(transaction)
                    nonces[sender] = nonce + 1
                    used += transaction.gas
            result, _, _ = self.chain.mine_all(taken, gas_limit=GAS_LIMIT)
            block = result.imported_block
            for index, transaction in enumerate(taken):
                self.blocks[transaction.hash] = (block, index)
            state = self.state()
            self.pool = [it for it in self.pool if it.nonce >= state.get_nonce(it.sender)]

    def send(self, raw):
        try:
            transaction = self.chain.get_vm().get_transaction_builder().decode(decode_hex(raw))
        except Exception as error:
            raise RpcError(f"unsupported transaction type: {error}")
        known = transaction.hash in self.blocks or any(it.hash == transaction.hash for it in self.pool)
        if known:
            raise RpcError("already known")
        state, sender = self.state(), transaction.sender
        mined = state.get_nonce(sender)
        pending = mined + sum(it.sender == sender for it in self.pool)
        if transaction.nonce < mined:
            raise RpcError(f"nonce too low: next nonce {mined}, tx nonce {transaction.nonce}")
        if transaction.nonce > pending:
            raise RpcError(f"nonce too high: next nonce {pending}, tx nonce {transaction.nonce}")
        if transaction.gas < transaction.intrinsic_gas:
            raise RpcError("intrinsic gas too low")
        if transaction.gas > GAS_LIMIT:
            raise RpcError("exceeds block gas limit")
        if transaction.max_fee_per_gas < (self.next_base_fee() or 0):
            raise RpcError("max fee per gas less than block base fee")
        cost = transaction.gas * transaction.max_fee_per_gas + transaction.value
        if state.get_balance(sender) < cost:
            raise RpcError("insufficient funds for gas * price + value")
        same = [it for it in self.pool if it.sender == sender and it.nonce == transaction.nonce]
        if same and transaction.max_fee_per_gas * 10 < same[0].max_fee_per_gas * 11:
            raise RpcError("replacement transaction underpriced")
        self.pool = [it for it in self.pool if it not in same] + [transaction]
        if self.automine:
            self.mine(1)
        return encode_hex(transaction.hash)

    def simulated(self, call, nonce, gas):
        builder = self.chain.get_vm().get_transaction_builder()
        to = call.get("to")
        transaction = builder.create_unsigned_transaction(
            nonce=nonce,
            gas_price=self.next_base_fee() or 0,
            gas=gas,
            to=decode_hex(to) if to else CREATE_CONTRACT_ADDRESS,
            value=int(call.get("value", "0x0"), 16),
            data=decode_hex(call.get("input", call.get("data", "0x"))),
        )
        return SpoofTransaction(transaction, from_=sender_of(call))

    def run(self, call, tag, gas):
        """The computation of a call, and whether it has enough gas."""
        header = self.header(tag)
        if header is None:
            raise RpcError("header not found")
        nonce = self.chain.get_vm(header).state.get_nonce(sender_of(call))
        transaction = self.simulated(call, nonce, gas)
        if gas < transaction.intrinsic_gas:
            return None
        with self.chain.get_vm(header).in_costless_state() as state:
            if state.get_balance(transaction.sender) < transaction.value:
                raise RpcError("insufficient funds for transfer")
            return state.apply_transaction(transaction)

    def call(self, call, tag):
        computation = self.run(call, tag, int(call.get("gas", hex(GAS_LIMIT)), 16))
        if computation is None:
            raise RpcError("intrinsic gas too low")
        if computation.is_error:
            raise failure(computation)
        return encode_hex(computation.output)

    def estimate(self, call, tag):
        computation = self.run(call, tag, GAS_LIMIT)
        if computation.is_error:
            raise failure(computation)
        low, high = 20_999, GAS_LIMIT
        while high - low > 1:
            gas = (low + high) // 2
            computation = self.run(call, tag, gas)
            if computation is not None and computation.is_success:
                high = gas
            else:
                low = gas
        return hex(high)

    # What the node tells

    def block(self, header, with_transactions):
        block = self.chain.get_block_by_header(header)
        shown = {
            "number": hex(header.block_number),
            "hash": encode_hex(header.hash),
            "parentHash": encode_hex(header.parent_hash),
            "timestamp": hex(header.timestamp),
            "gasLimit": hex(header.gas_limit),
            "gasUsed": hex(header.gas_used),
            "transactions": [
                self.transaction(it) if with_transactions else encode_hex(it.hash) for it in block.transactions
            ],
        }
        base_fee = base_fee_of(header)
        return shown if base_fee is None else shown | {"baseFeePerGas": hex(base_fee)}

    def transaction(self, transaction):
        block, index = self.blocks.get(transaction.hash, (None, None))
        type_id = getattr(transaction, "type_id", None) or 0
        shown = {
            "type": hex(type_id),
            "hash": encode_hex(transaction.hash),
            "from": encode_hex(transaction.sender),
            "to": encode_hex(transaction.to) if transaction.to else None,
            "nonce": hex(transaction.nonce),
            "value": hex(transaction.value),
            "gas": hex(transaction.gas),
            "input": encode_hex(transaction.data),
            "r": hex(transaction.r),
            "s": hex(transaction.s),
            "blockHash": encode_hex(block.hash) if block else None,
            "blockNumber": hex(block.number) if block else None,
            "transactionIndex": hex(index) if block else None,
        }
        if type_id == 0:
            return shown | {"gasPrice": hex(transaction.gas_price), "v": hex(transaction.v)}
        return shown | {
            "chainId": hex(transaction.chain_id),
            "v": hex(transaction.y_parity),
            "maxFeePerGas": hex(transaction.max_fee_per_gas),
            "maxPriorityFeePerGas": hex(transaction.max_priority_fee_per_gas),
        }

    def receipt(self, transaction_hash):
        found = self.blocks.get(decode_hex(transaction_hash))
        if found is None:
            return None
        block, index = found
        receipts = block.get_receipts(self.chain.chaindb)
        transaction, receipt = block.transactions[index], receipts[index]
        before = receipts[index - 1].gas_used if index else 0
        base_fee = base_fee_of(block.header) or 0
        tip = min(transaction.max_priority_fee_per_gas, transaction.max_fee_per_gas - base_fee)
        created = None
        if not transaction.to:
            created = encode_hex(generate_contract_address(transaction.sender, transaction.nonce))
        place = {"blockHash": encode_hex(block.hash), "blockNumber": hex(block.number)}
        return place | {
            "transactionHash": transaction_hash,
            "transactionIndex": hex(index),
            "status": hex(int.from_bytes(receipt.state_root, "big")),
            "gasUsed": hex(receipt.gas_used - before),
            "effectiveGasPrice": hex(base_fee + tip),
            "contractAddress": created,
            "logs": [
                place
                | {
                    "address": encode_hex(log.address),
                    "topics": [f"0x{topic:064x}" for topic in log.topics],
                    "data": encode_hex(log.data),
                    "transactionHash": transaction_hash,
                }
                for log in receipt.logs
            ],
        }

    def fee_history(self, count, percentiles):
        if FORK == "berlin":
            raise RpcError("the method eth_feeHistory does not exist", -32601)
        last = self.head().block_number
        first = max(0, last + 1 - int(count, 16))
        headers = [self.chain.get_canonical_block_header_by_number(it) for it in range(first, last + 1)]
        return {
            "oldestBlock": hex(first),
            "baseFeePerGas": [hex(base_fee_of(it)) for it in headers] + [hex(self.next_base_fee())],
            "gasUsedRatio": [it.gas_used / it.gas_limit for it in headers],
            "reward": [["0x0"] * len(percentiles) for _ in headers],
        }

    def find(self, transaction_hash):
        wanted = decode_hex(transaction_hash)
        if wanted in self.blocks:
            block, index = self.blocks[wanted]
            return self.transaction(block.transactions[index])
        found = [it for it in self.pool if it.hash == wanted]
        return self.transaction(found[0]) if found else None

    def count(self, address, tag):
        sender = decode_hex(address)
        mined = self.state(tag).get_nonce(sender)
        return hex(mined + (sum(it.sender == sender for it in self.pool) if tag == "pending" else 0))

    def set_automine(self, is_on):
        self.automine = is_on
        if is_on and self.pool:
            self.mine(1)

    def drop(self, transaction_hash):
        self.pool = [it for it in self.pool if encode_hex(it.hash) != transaction_hash]

    def block_at(self, tag, with_transactions):
        header = self.header(tag)
        return None if header is None else self.block(header, with_transactions)

    def answer(self, method, params):
        methods = {
            "eth_chainId": lambda: hex(OPTIONS["chain_id"]),
            "eth_syncing": lambda: False,
            "eth_blockNumber": lambda: hex(self.head().block_number),
            "eth_getBlockByNumber": lambda tag, full: self.block_at(tag, full),
            "eth_getTransactionCount": lambda address, tag: self.count(address, tag),
            "eth_getBalance": lambda address, tag: hex(self.state(tag).get_balance(decode_hex(address))),
            "eth_getCode": lambda address, tag: encode_hex(self.state(tag).get_code(decode_hex(address))),
            "eth_getStorageAt": lambda address, slot, tag: (
                f"0x{self.state(tag).get_storage(decode_hex(address), int(slot, 16)):064x}"
            ),
            "eth_call": lambda call, tag="latest": self.call(call, tag),
            "eth_estimateGas": lambda call, tag="latest": self.estimate(call, tag),
            "eth_gasPrice": lambda: hex((self.next_base_fee() or 0) + GWEI),
            "eth_feeHistory": lambda count, _, percentiles: self.fee_history(count, percentiles),
            "eth_sendRawTransaction": self.send,
            "eth_getTransactionByHash": self.find,
            "eth_getTransactionReceipt": self.receipt,
            "hardhat_mine": lambda count: self.mine(int(count, 16)),
            "hardhat_dropTransaction": self.drop,
            "evm_setAutomine": self.set_automine,
        }
        if method not in methods:
            raise RpcError(f"the method {method} does not exist", -32601)
        return methods[method](*params)


def base_fee_of(header):
    return None if FORK == "berlin" else header.base_fee_per_gas


def sender_of(call):
    return decode_hex(call.get("from", "0x" + "00" * 20))


def failure(computation):
    data = encode_hex(computation.output) if computation.output else None
    name = type(computation.error).__name__
    if name == "Revert":
        return RpcError("execution reverted", 3, data)
    return RpcError({"OutOfGas": "out of gas", "InvalidInstruction": "invalid opcode"}.get(name, name))


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    node, lock = None, RLock()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        text = json.dumps(self.reply(json.loads(body))).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def reply(self, call):
        if isinstance(call, list):
            return {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "batches are not accepted"}}
        answer = {"jsonrpc": "2.0", "id": call.get("id")}
        try:
            with self.lock:
                return answer | {"result": self.node.answer(call["method"], call.get("params", []))}
        except RpcError as error:
            return answer | {"error": error.error}
        except (ValidationError, TypeError, ValueError) as error:
            return answer | {"error": {"code": -32602, "message": f"invalid parameters: {error}"}}

    def log_message(self, *_):
        pass


def main():
    Handler.node = Node()
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler)
    server.daemon_threads = True
    for index, account in enumerate(ACCOUNTS):
        print(f"Account #{index}: {account.address}\nPrivate Key: {keys.PrivateKey(account.key).to_hex()}")
    print(f"Listening on 127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


main()
